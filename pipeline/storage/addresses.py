"""Which network addresses a manifest's URLs may reach: public ones, and those that the run names."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_IPV6_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""Its last 32 bits are the IPv4 address that is really reached (RFC 6052)."""
_SPECIAL = [
    ipaddress.ip_network(one)
    for one in (
        "192.0.0.0/24",  # protocol assignments, metadata of a cloud among them (IANA special-purpose registry)
        "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        "168.63.129.16/32",  # Azure's host, public by its number only
        "2001::/23",  # protocol assignments, Teredo among them, which embeds an IPv4 address (RFC 4380)
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which embeds an IPv4 address (RFC 3056)
        "3fff::/20",  # documentation (RFC 9637)
    )
]


def is_reachable(address: str, allowed: Sequence[Network]) -> bool:
    """Whether a connection to the numeric `address` may be made.

    Never to private, loopback, link-local, metadata, multicast and reserved addresses, nor to an IPv6
    address that stands for such an IPv4 address, unless one of the `allowed` networks holds it. A text
    that is not an address in its one usual form is never reachable.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return is_reachable(str(parsed.ipv4_mapped), allowed)
        if any(_holds(network, parsed) for network in allowed):
            return True
        if parsed in _NAT64:
            return is_reachable(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)), allowed)
        return parsed in _IPV6_UNICAST and _is_public(parsed)
    return any(_holds(network, parsed) for network in allowed) or _is_public(parsed)


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    special = address.is_multicast or any(_holds(network, address) for network in _SPECIAL)
    return address.is_global and not special


def _holds(network: Network, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return network.version == address.version and address in network
