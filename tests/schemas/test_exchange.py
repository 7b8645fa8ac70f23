"""HTTP: what is no answer, and where credentials do not go."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from barnabas.schemas.errors import RegistryError, RegistryNotAvailable, SchemaError
from barnabas.schemas.exchange import Exchange
from barnabas.schemas.settings import RegistrySettings


@contextlib.contextmanager
def answering(data: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Answer one connection with bytes, and keep what it sent."""
    sent: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            sent.append(connection.recv(65536))
            connection.sendall(data)

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", sent
    thread.join()
    listener.close()


def exchange(url: str, **options: object) -> Exchange:
    return Exchange(RegistrySettings.of({"url": url, "max.retries": 0, **options}))


def test_credentials_do_not_follow_a_redirect():
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n"
    with (
        answering(answer) as (url, sent),
        pytest.raises(RegistryError, match=r"it redirects to http://elsewhere\.example/"),
    ):
        exchange(url, **{"bearer.auth.token": "secret"}).ask("/subjects")
    assert b"Bearer secret" in sent[0]


def test_an_answer_that_is_not_json_or_not_http():
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi") as (url, _):
        assert exchange(url).ask("/subjects")[1:] == (200, None)
    with answering(b"SSH-2.0\r\n\r\n") as (url, _), pytest.raises(RegistryNotAvailable, match=r"ssh-2\.0"):
        exchange(url).ask("/subjects")


def test_a_host_that_is_silent():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(RegistryNotAvailable, match="no answer in time"):
            exchange(url, timeout=0.05).ask("/subjects")


def test_certificates_that_cannot_be_read(tmp_path):
    with pytest.raises(SchemaError, match=r"cannot read the certificates .*ca\.pem: .*No such file"):
        exchange("https://localhost", **{"ssl.ca.location": str(tmp_path / "ca.pem")})
