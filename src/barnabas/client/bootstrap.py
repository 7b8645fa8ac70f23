"""The addresses a client starts from (`bootstrap.servers`).

Limits: names are not resolved here, and a listener's protocol in front of an address is ignored.
Source: Kafka's `ClientUtils.parseAndValidateAddresses`.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.words.printable import printable

DEFAULT_PORT = 9092


def format_address(host: str, port: int) -> str:
    """Return `host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_bootstrap(bootstrap: str | Iterable[str]) -> list[tuple[str, int]]:
    """Return the addresses in `host:port,host:port`; a missing port is 9092, an IPv6 address stands in brackets.

    Raises:
        ValueError: an address does not parse.
    """
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    addresses: list[tuple[str, int]] = []
    for part in (part.strip() for part in parts):
        if not part:
            continue
        # Kafka allows a listener's protocol in front.
        text = part.split("://", 1)[-1]
        if text.startswith("["):
            host, bracket, rest = text[1:].partition("]")
            port_text = rest.removeprefix(":")
            valid = bool(bracket) and (not rest or rest.startswith(":"))
        else:
            host, colon, port_text = text.partition(":")
            valid = not colon or bool(port_text)
        port_text = port_text or str(DEFAULT_PORT)
        is_number = port_text.isascii() and port_text.isdigit()
        if valid and host and is_number and not 0 < int(port_text) < 65536:
            raise ValueError(f"'{printable(part)}' is not a valid broker address: a port is a number from 1 to 65535")
        if not (valid and host and is_number):
            example = "[::1]" if text.count(":") > 1 and "[" not in text else "localhost"
            raise ValueError(
                f"'{printable(part)}' is not a valid broker address: write host:port, for example {example}:{DEFAULT_PORT}"
            )
        addresses.append((host, int(port_text)))
    if not addresses:
        raise ValueError(f"no broker address: write host:port, for example localhost:{DEFAULT_PORT}")
    return addresses
