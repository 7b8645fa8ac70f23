"""`--listen`: the addresses that it takes, and one that is taken."""

from __future__ import annotations

import socket

import click
import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.listen_address import listen_address, listening


@pytest.mark.parametrize(
    ("given", "found"),
    [("localhost:8081", ("localhost", 8081)), ("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:8081", ("::1", 8081))],
)
def test_an_address(given: str, found: tuple[str, int]) -> None:
    assert listen_address(given) == found


@pytest.mark.parametrize("given", ["here", ":8081", "localhost:", "localhost:port", "localhost:99999"])
def test_not_an_address(given: str) -> None:
    with pytest.raises(click.BadParameter, match="is not HOST:PORT"):
        listen_address(given)


def test_an_address_that_is_taken() -> None:
    def taken(host: str, port: int) -> socket.socket:
        raise OSError(98, "Address already in use")

    with pytest.raises(Failure, match="cannot listen on localhost:1: address already in use"):
        listening("localhost:1", "localhost", 1, taken)
