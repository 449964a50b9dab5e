"""Benchmarks: each a command that prints its own baseline beside its figure."""
