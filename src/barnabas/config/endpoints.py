"""Listeners: the entries of `listeners` and `advertised.listeners`, each with the security protocol that its name stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.metadata.config_schema import ConfigError, ConfigValue
from barnabas.words.printable import printable

__all__ = ["PROTOCOL_MAP", "Listener", "endpoints", "parse_port", "security_protocols"]

PROTOCOL_MAP = "listener.security.protocol.map"
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_DIGITS_MAX = 20


class Listener(NamedTuple):
    """One entry of `listeners` or `advertised.listeners`; an empty host means every address."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


def parse_port(text: str, *, lowest: int = 0) -> int | None:
    """Return the number of a port, None if the text is not a number from `lowest` to 65535."""
    # A superscript is a digit, too, but int() does not read it; nor does it read thousands of digits.
    if not text.isascii() or not text.removeprefix("-").isdigit() or len(text) > _DIGITS_MAX:
        return None
    port = int(text)
    return port if lowest <= port <= 65535 else None


def _parse(name: str, entries: tuple[str, ...], protocols: Mapping[str, str]) -> tuple[Listener, ...]:
    found: list[Listener] = []
    for entry in entries:
        listener, separator, address = entry.partition("://")
        host, colon, port = address.rpartition(":")
        number = parse_port(port, lowest=-1)
        if not separator or not colon or number is None:
            raise ConfigError(
                f"Invalid value {entry} for configuration {name}: use NAME://host:port, as in PLAINTEXT://localhost:9092"
            )
        listener = listener.upper()
        if listener not in protocols:
            raise ConfigError(
                f"Invalid value {entry} for configuration {name}: listener {listener} has no security protocol; "
                f"add {listener}:PLAINTEXT to {PROTOCOL_MAP}"
            )
        if any(other.name == listener for other in found):
            raise ConfigError(f"Each listener must have a different name; {name} names {listener} twice")
        found.append(Listener(listener, host.strip("[]"), number, protocols[listener]))
    return tuple(found)


def security_protocols(text: str) -> dict[str, str]:
    """Return the security protocol of each listener name, both in capitals.

    Args:
        text: the value of `listener.security.protocol.map`.

    Raises:
        ConfigError: an entry is not NAME:PROTOCOL, or nobody knows the protocol.
    """
    protocols: dict[str, str] = {}
    for entry in text.split(","):
        name, colon, protocol = (word.strip() for word in entry.partition(":"))
        if not colon or not name:
            raise ConfigError(
                f"Invalid value {printable(text)} for configuration {PROTOCOL_MAP}: "
                "use NAME:PROTOCOL,NAME:PROTOCOL, as in PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
            )
        if protocol.upper() not in _PROTOCOLS:
            raise ConfigError(
                f"{PROTOCOL_MAP}: {printable(name)} has the protocol {printable(protocol)}, "
                f"which is not one of {', '.join(_PROTOCOLS)}"
            )
        protocols[name.upper()] = protocol.upper()
    return protocols


def endpoints(value: Callable[[str], ConfigValue]) -> dict[str, tuple[Listener, ...] | None]:
    """Return the listeners of clients and of controllers, and the advertised addresses of both.

    Returns:
        `listeners`, `controller_listeners`, `advertised_controller_listeners`, and `advertised_listeners`, which is None for `auto`.

    Args:
        value: returns a broker setting's value by Kafka's name.

    Raises:
        ConfigError: there is no listener, or an entry does not parse or has no security protocol.
    """
    protocols = security_protocols(str(value(PROTOCOL_MAP)))
    names = value("controller.listener.names")
    assert isinstance(names, tuple)
    controller_names = {name.upper() for name in names}
    for name in controller_names:
        protocols.setdefault(name, "PLAINTEXT")
    listed, advertised = value("listeners"), value("advertised.listeners")
    assert isinstance(listed, tuple)
    if not listed:
        raise ConfigError("listeners is empty: name one, as in PLAINTEXT://localhost:9092")
    is_auto = advertised in (None, (), ("auto",))
    # First, because `listeners` may be made of them (`environment.on_every_address`): the error names what the user gave.
    told = (
        _parse("advertised.listeners", advertised, protocols) if isinstance(advertised, tuple) and not is_auto else ()
    )
    every = _parse("listeners", listed, protocols)
    return {
        "listeners": tuple(x for x in every if x.name not in controller_names),
        "controller_listeners": tuple(x for x in every if x.name in controller_names),
        "advertised_listeners": None if is_auto else tuple(x for x in told if x.name not in controller_names),
        "advertised_controller_listeners": tuple(x for x in told if x.name in controller_names),
    }
