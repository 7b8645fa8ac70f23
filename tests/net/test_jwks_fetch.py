"""Documents from files and servers: what arrives, what is too long or too late, and where a redirect may lead."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from barnabas.net import jwks_fetch
from barnabas.net.jwks_fetch import DOCUMENT_BYTES_MAX, document_reader, shown_address
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.tls_settings import client_context, server_context

BODIES = {"/keys": b"{}", "/long": b"x" * (DOCUMENT_BYTES_MAX + 1)}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ends = threading.Event()
        self.scheme = "http" if context is None else "https"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that hung up."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in ("/silent", "/slow"):
            if path == "/slow":
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                while not self.server.ends.wait(0.02):
                    self.wfile.write(b" ")
            self.server.ends.wait()
            return
        if path == "/other":
            self.wfile.write(b"SSH-2.0-x\r\n")
            return
        places = {"/moved": f"{self.server.url}/keys", "/unsafe": "ftp://127.0.0.1/keys"}
        self.send_response(302 if path in places else 200 if path in BODIES else 404)
        if path in places:
            self.send_header("Location", places[path])
        self.end_headers()
        self.wfile.write(BODIES.get(path, b""))

    def log_message(self, format: str, *args: object) -> None:
        pass


def serving(made: Server) -> Iterator[Server]:
    with made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.ends.set()
        made.shutdown()
        thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    yield from serving(Server())


def no_tls() -> ssl.SSLContext:
    pytest.fail("plain HTTP asks for no context of TLS")


def why_not(url: str) -> str:
    read = document_reader(url, no_tls)
    with pytest.raises(OSError) as caught:
        read()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "my keys.json"
    file.write_bytes(b"{}")
    assert document_reader(file.as_uri(), no_tls)() == b"{}"
    file.write_bytes(BODIES["/long"])
    assert why_not(file.as_uri()) == "the document is longer than 1,048,576 bytes"
    file.unlink()
    assert why_not(file.as_uri()) == "the file cannot be read (No such file or directory)"
    assert why_not(tmp_path.as_uri()) == "the file cannot be read (Is a directory)"


def test_a_server(server: Server) -> None:
    for path in ("/keys?s3cret", "/moved"):
        assert document_reader(server.url + path, no_tls)() == b"{}"
    assert why_not(f"{server.url}/missing") == "the server answered with HTTP status 404"
    assert why_not(f"{server.url}/unsafe") == "the server answered with HTTP status 302"
    assert why_not(f"{server.url}/long") == "the document is longer than 1,048,576 bytes"
    assert why_not(f"{server.url}/other") == "the server's answer is not HTTP"
    assert why_not("http://127.0.0.1:1/keys").startswith("the server cannot be reached: ")


@pytest.mark.parametrize("path", ["/silent", "/slow"])
def test_a_server_that_is_late(server: Server, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(jwks_fetch, "DEADLINE_S", 0.1)
    assert "timed out" in (why := why_not(server.url + path)) or "did not send the whole document" in why


def test_a_server_with_tls() -> None:
    authority = DevelopmentAuthority.create(int(time.time() * 1000))
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.certificate}
    for server in serving(Server(server_context(authority.issue("CN=node", hosts=["127.0.0.1"]).settings()))):
        assert document_reader(f"{server.url}/keys", lambda: client_context(trusted))() == b"{}"
        read = document_reader(f"{server.url}/keys", lambda: client_context({}))
        with pytest.raises(OSError, match=r"the server cannot be reached: .*certificate verify failed"):
            read()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("keys.json", "expected a URL that begins with file:, https: or http:"),
        ("ftp://h/keys", "expected a URL that begins with file:, https: or http:"),
        ("https:///keys", "expected a URL that begins with file:, https: or http:"),
        ("https://[::1/keys", "is not a URL"),
        (
            "https://alice:hunter2@h/keys",
            "has a user or a password before the host; a key set is public, so leave it out",
        ),
    ],
)
def test_addresses_that_cannot_be_read(url: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        document_reader(url, no_tls)
    assert str(caught.value) == why


def test_what_is_shown_of_an_address() -> None:
    assert shown_address("https://h/keys?key=hunter2#x") == "https://h/keys"
    assert shown_address("https://h/\x1b") == "https://h/\\x1b"
