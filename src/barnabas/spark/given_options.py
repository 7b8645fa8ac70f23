"""The options that a user gives the source or the sink, looked up by name and read as numbers, booleans and addresses.

Spark hands them over as text. Names are compared without regard to case, as Spark does. Each method raises ValueError
for a text that it cannot read; the message names the option and is for the user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from barnabas.client.bootstrap import DEFAULT_PORT, parse_bootstrap

_PORT = re.compile(r":\d+\s*$")


class GivenOptions:
    """The user's options, looked up without regard to case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {str(name).lower(): str(options[name]) for name in options}

    def __repr__(self) -> str:
        return f"<GivenOptions names={','.join(self.names())}>"

    def text(self, name: str) -> str | None:
        """Return an option as the user wrote it; None if it is not given."""
        return self._options.get(name.lower())

    def integer(self, name: str) -> int | None:
        """Return a whole number; None if the option is not given."""
        text = self.text(name)
        if text is None:
            return None
        try:
            return int(text.strip())
        except ValueError:
            raise ValueError(f"{name} must be a whole number, not '{text}'") from None

    def positive(self, name: str) -> int | None:
        """Return a number above 0; None if the option is not given."""
        number = self.integer(name)
        if number is not None and number <= 0:
            raise ValueError(f"{name} must be positive")
        return number

    def not_negative(self, name: str, default: int) -> int:
        """Return a number from 0 on."""
        number = self.integer(name)
        if number is None:
            return default
        if number < 0:
            raise ValueError(f"{name} must not be negative")
        return number

    def boolean(self, name: str, default: bool) -> bool:
        """Return `true` or `false`, in any case."""
        text = self.text(name)
        if text is None:
            return default
        if text.strip().lower() not in ("true", "false"):
            raise ValueError(f"{name} must be true or false, not '{text}'")
        return text.strip().lower() == "true"

    def names(self) -> list[str]:
        """Return the names of all options, in lower case, sorted."""
        return sorted(self._options)


def addresses(given: GivenOptions) -> str:
    """Return `kafka.bootstrap.servers`; empty if it is not given.

    Unlike a person at a terminal, a pipeline must name the port: the default one may be a wrong cluster's.

    Raises:
        ValueError: an address is not valid, or has no port.
    """
    servers = (given.text("kafka.bootstrap.servers") or "").strip()
    for address in servers.split(",") if servers else ():
        try:
            parse_bootstrap(address)
        except ValueError as error:
            raise ValueError(f"kafka.bootstrap.servers: {error}") from None
        if not _PORT.search(address):
            raise ValueError(
                f"kafka.bootstrap.servers: '{address.strip()}' has no port: write host:port, for example "
                f"{address.strip()}:{DEFAULT_PORT}"
            )
    return servers
