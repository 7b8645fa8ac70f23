"""Hosts of access control lists: addresses as Java writes them, and ranges in CIDR notation.

    *                       every address
    10.0.0.7                IPv4, dotted; IPv4 inside IPv6 counts as IPv4
    2001:db8:0:0:0:0:0:7    IPv6, eight groups without `::` and without leading zeros; %zone follows if the address has one
    10.0.0.0/8, 2001:db8::/32   a range, with any bits behind the prefix (metadata.version 4.4-IV1)

- An address is compared as text: a rule for `::1` matches no client.
- A range of IPv6 holds no IPv4 address and the other way round; the address 0.0.0.0 is in no range.

Sources: Java's `InetAddress.getHostAddress`; Kafka's `CidrUtils` and the `SubnetUtils` of Apache Commons Net.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple

__all__ = ["AddressRange", "java_address", "parse_range"]

_RANGE_4 = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})/([0-9]{1,2})", re.ASCII)
_LONG_ZEROS = re.compile(r"(?<![0-9a-fA-F.])0+(?=[0-9a-fA-F]+(:|$))")
_PREFIX = re.compile(r"[+-]?[0-9]+", re.ASCII)


class AddressRange(NamedTuple):
    """The addresses of one version from the lowest to the highest, as numbers."""

    version: int
    lowest: int
    highest: int

    def holds(self, host: str) -> bool:
        """Return whether an address, as Java writes it, is in the range."""
        version, number = _number_of(host)
        return version == self.version and self.lowest <= number <= self.highest


def parse_range(text: str) -> AddressRange:
    """Return the range in CIDR notation.

    Raises:
        ValueError: it is not one; the text is Kafka's.
    """
    return _range_6(text) if ":" in text else _range_4(text)


def _range_4(text: str) -> AddressRange:
    found = _RANGE_4.fullmatch(text)
    if found is None:
        raise ValueError(f"Could not parse [{text}]")
    *octets, length = (int(part) for part in found.groups())
    for value, highest in [*((octet, 255) for octet in octets), (length, 32)]:
        if value > highest:
            raise ValueError(f"Value [{value}] not in range [0,{highest}]")
    # The address 0 is in no range: SubnetUtils takes it for "none".
    lowest, highest = _bounds(int.from_bytes(bytes(octets), "big"), 32, length)
    return AddressRange(4, max(lowest, 1), highest)


def _range_6(text: str) -> AddressRange:
    address, slash, digits = text.partition("/")
    if not slash:
        raise ValueError(f"Could not parse [{text}] - missing prefix length")
    if not _PREFIX.fullmatch(digits):
        raise ValueError(f"Could not parse [{text}] - invalid prefix length")
    length = int(digits)
    if not 0 <= length <= 128:
        raise ValueError(f"Could not parse [{text}] - prefix length must be between 0 and 128")
    if address[:1] == "[" and address[-1:] == "]":
        address = address[1:-1]
    try:
        parsed = IPv6Address(_LONG_ZEROS.sub("", address))
    except AddressValueError:
        raise ValueError(f"Could not parse [{address}]") from None
    if parsed.ipv4_mapped is not None:
        raise ValueError(f"Could not parse [{address}] - not an IPv6 address")
    return AddressRange(6, *_bounds(int(parsed), 128, length))


def _bounds(number: int, bits: int, length: int) -> tuple[int, int]:
    rest = (1 << bits - length) - 1
    return number & ~rest, number | rest


@lru_cache(maxsize=4096)
def _number_of(host: str) -> tuple[int, int]:
    """Return version and number of an address; version 0 if the text is none."""
    try:
        return (6, int(IPv6Address(host.partition("%")[0]))) if ":" in host else (4, int(IPv4Address(host)))
    except AddressValueError:
        return 0, 0


@lru_cache(maxsize=4096)
def java_address(host: str) -> str:
    """Return an address as Java writes it; a text that is no address comes back as it is."""
    address, percent, zone = host.partition("%")
    try:
        parsed = IPv6Address(address)
    except AddressValueError:
        return host
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":")) + percent + zone
