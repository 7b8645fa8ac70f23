"""`--listen` of the commands that serve HTTP: the address, and the error of one that is taken."""

from __future__ import annotations

import socket
from collections.abc import Callable

import click

from barnabas.cli.failure import Failure
from barnabas.client.bootstrap import parse_bootstrap
from barnabas.words.printable import printable

__all__ = ["listen_address", "listening"]


def listen_address(listen: str) -> tuple[str, int]:
    """Return the host and the port of a `--listen`; port 0 is a free one.

    Raises:
        BadParameter: it is not HOST:PORT.
    """
    host, _, port = listen.rpartition(":")
    if port == "0" and host:
        return host.strip("[]"), 0
    if not host or not port.isdigit():
        raise click.BadParameter(f"{listen!r} is not HOST:PORT", param_hint="--listen")
    try:
        ((found, number),) = parse_bootstrap(listen)
    except ValueError:
        raise click.BadParameter(f"{listen!r} is not HOST:PORT", param_hint="--listen") from None
    return found, number


def listening(
    listen: str, host: str, port: int, listening_socket: Callable[[str, int], socket.socket]
) -> socket.socket:
    """Return a socket that listens.

    Args:
        listen: the address as it was given.
        listening_socket: of `http_serving`, which a command imports late.

    Raises:
        Failure: the address is taken, or is not this machine's.
    """
    try:
        return listening_socket(host, port)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise Failure(f"cannot listen on {printable(listen)}: {why}", "--listen HOST:PORT chooses another") from None
