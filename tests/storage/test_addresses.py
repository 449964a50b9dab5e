"""Which addresses are public; expected as the IANA registries of special-purpose addresses have them."""

from __future__ import annotations

import ipaddress

import pytest

from pipeline.storage.addresses import is_reachable


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"],
)
def test_public_addresses(address: str) -> None:
    assert is_reachable(address, ())


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "100.100.100.200",  # metadata of Alibaba Cloud
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",  # Azure's host
        "169.254.169.254",  # metadata of AWS, Google Cloud and Azure
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",  # metadata of Oracle Cloud
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",  # metadata of AWS
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
    ],
)
def test_addresses_that_nobody_outside_has(address: str) -> None:
    assert not is_reachable(address, ())


@pytest.mark.parametrize(
    "text", ["", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "8.8.8", "8.8.8.8 ", "x"]
)
def test_what_is_no_usual_form_of_an_address(text: str) -> None:
    assert not is_reachable(text, ())


def test_allowed_networks_let_in_their_own_addresses_only() -> None:
    networks = [ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00:1::/32")]
    for address in ("10.1.255.255", "::ffff:10.1.0.1", "64:ff9b::10.1.0.1", "fd00:1::5", "8.8.8.8"):
        assert is_reachable(address, networks)
    for address in ("10.2.0.0", "127.0.0.1", "::ffff:10.2.0.1", "64:ff9b::10.2.0.1", "fd00:2::5"):
        assert not is_reachable(address, networks)
