"""Addresses as clients dial them, and the words for one that cannot be bound."""

from __future__ import annotations

import errno
import socket

import pytest

from barnabas.client.bootstrap import parse_bootstrap
from barnabas.config.cannot_start import CannotStart, remedies
from barnabas.net.addresses import dialable, metrics_address, remedy_for, why_not


@pytest.mark.parametrize(
    ("host", "address", "parsed"),
    [
        ("127.0.0.1", "127.0.0.1:9100", "127.0.0.1"),
        ("broker.example", "broker.example:9100", "broker.example"),
        ("::1", "[::1]:9100", "::1"),
        ("", "localhost:9100", "localhost"),
        ("0.0.0.0", "localhost:9100", "localhost"),
        ("::", "localhost:9100", "localhost"),
    ],
)
def test_an_address_is_one_that_a_client_accepts(host: str, address: str, parsed: str) -> None:
    assert dialable(host, 9100) == address
    assert parse_bootstrap(address) == [(parsed, 9100)]


@pytest.mark.parametrize(
    ("error", "words", "remedy"),
    [
        (
            OSError(errno.EADDRINUSE, "error while attempting to bind on address ('127.0.0.1', 9092): in use"),
            "Address already in use",
            " (is another broker running? --listen HOST:0 picks a free port)",
        ),
        (
            OSError(errno.EADDRNOTAVAIL, "x ('192.0.2.1', 9092)"),
            "Cannot assign requested address",
            " (is it an address of this machine?)",
        ),
        (
            PermissionError(errno.EACCES, "x ('127.0.0.1', 80)"),
            "Permission denied",
            " (a port below 1024 needs more rights; --listen HOST:0 picks a free port)",
        ),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known", ""),
        (OSError("no number"), "no number", ""),
    ],
)
def test_an_address_that_cannot_be_bound(error: OSError, words: str, remedy: str) -> None:
    assert why_not(error) == words
    assert remedy_for(error, remedies(embedded=False)) == remedy


def test_the_address_of_metrics() -> None:
    assert metrics_address("") is None
    assert metrics_address("127.0.0.1:9308") == ("127.0.0.1", 9308)
    assert metrics_address("[::1]:0") == ("::1", 0)
    for text in ("9308", "host:port", "host:70000", "host:²"):
        with pytest.raises(CannotStart, match=f"barnabas.metrics.listen {text}: must be HOST:PORT"):
            metrics_address(text)
