"""Addresses to listen on: how a client dials one, and why one cannot be bound."""

from __future__ import annotations

import errno
import os
import socket

from barnabas.client.bootstrap import format_address
from barnabas.config.cannot_start import CannotStart, Remedies
from barnabas.config.endpoints import parse_port
from barnabas.words.printable import printable

__all__ = ["EVERY_ADDRESS", "dialable", "metrics_address", "remedy_for", "why_not"]

EVERY_ADDRESS = ("", "0.0.0.0", "::")


def dialable(host: str, port: int) -> str:
    """Return HOST:PORT of a listener as a client on this machine can dial it, an IPv6 address in brackets."""
    if host in EVERY_ADDRESS:
        host = "localhost"
    return format_address(host, port)


def why_not(error: OSError) -> str:
    """Return the system's words for an address that cannot be bound; the loop's words have the address as Python writes it."""
    if error.errno is not None and error.errno > 0 and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return error.strerror or str(error)


def remedy_for(error: OSError, known: Remedies) -> str:
    """Return a remedy for an address that cannot be bound; empty if the system's message suffices."""
    if error.errno == errno.EADDRINUSE:
        return f" (is another broker running? {known.free_port})"
    if error.errno == errno.EACCES:
        return f" (a port below 1024 needs more rights; {known.free_port})"
    return " (is it an address of this machine?)" if error.errno == errno.EADDRNOTAVAIL else ""


def metrics_address(text: str, name: str = "barnabas.metrics.listen") -> tuple[str, int] | None:
    """Return host and port of a setting or an option with this name, None if it is empty.

    Raises:
        CannotStart: it is not HOST:PORT.
    """
    if not text:
        return None
    host, separator, port_text = text.rpartition(":")
    port = parse_port(port_text)
    if not separator or port is None:
        raise CannotStart(f"{name} {printable(text)}: must be HOST:PORT")
    return host.strip("[]"), port
