"""What listens at an address, by how it answers."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

import pytest

import barnabas
from barnabas.client.other_protocols import HTTP, KAFKA, TLS, protocol_at, protocol_of


@pytest.mark.parametrize(
    ("answer", "protocol"),
    [
        (b"\x15\x03\x01\x00\x02", TLS),
        (b"\x16\x03\x03\x00\x7a", TLS),
        (b"\x16\x02", None),
        (b"\x16", None),
        (b"HTTP/1.1 400 Bad Request\r\n", HTTP),
        (b"HTTP/1.1 400 Bad Request\r\n\r\nan HTTP request arrived on the Kafka listener", None),
        (b"SSH-2.0-OpenSSH\r\n", None),
        (b"\x00\x00\x00\x0a", None),
        (b"", None),
    ],
)
def test_the_first_bytes_of_an_answer(answer: bytes, protocol: str | None) -> None:
    assert protocol_of(answer) == protocol


@contextlib.contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Yield the port of a server that answers each connection in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    asking, _ = server.accept()
                    threading.Thread(target=answered, args=(asking,), daemon=True).start()

        def answered(asking: socket.socket) -> None:
            with asking, contextlib.suppress(OSError):
                answer(asking)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def as_http(asking: socket.socket) -> None:
    """Answer the end of a request's head, as servers do: a Kafka request is waited upon."""
    head = b""
    while b"\r\n\r\n" not in head and (more := asking.recv(1000)):
        head += more
    if head.startswith(b"GET "):
        asking.sendall(b"HTTP/1.0 404 Not Found\r\n\r\n")


def closing(asking: socket.socket) -> None:
    pass


def silent(asking: socket.socket) -> None:
    while asking.recv(1000):
        pass


def as_tls(asking: socket.socket) -> None:
    """Answer a client hello with an alert: there is no certificate."""
    with ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).wrap_socket(asking, server_side=True):
        pass


@pytest.mark.parametrize(("answer", "protocol"), [(as_tls, TLS), (as_http, HTTP)])
def test_a_listener_with_tls_and_an_http_server(answer: Callable[[socket.socket], None], protocol: str) -> None:
    with serving(answer) as port:
        assert protocol_at("127.0.0.1", port) == protocol


@pytest.mark.parametrize("answer", [closing, silent])
def test_what_answers_nothing(answer: Callable[[socket.socket], None]) -> None:
    with serving(answer) as port:
        assert protocol_at("127.0.0.1", port, timeout_s=0.05) is None
    assert protocol_at("127.0.0.1", port, timeout_s=0.05) is None


@pytest.mark.slow
def test_a_broker_is_a_kafka_listener() -> None:
    """It answers HTTP by saying what it is."""
    with barnabas.Broker() as broker:
        assert protocol_at("127.0.0.1", broker.port) == KAFKA
