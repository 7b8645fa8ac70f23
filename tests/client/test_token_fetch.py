"""A token server over HTTP: its answer, a status that is not success, and a redirect that is not followed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import NamedTuple

import pytest

from barnabas.client.token_fetch import fetch_token
from barnabas.security.token_source import TokenRequest


class Asked(NamedTuple):
    path: str
    authorization: str | None
    body: bytes


class Server(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[Asked] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(Asked(self.path, self.headers["Authorization"], body))
        self.send_response({"/token": 200, "/moved": 302}.get(self.path, 401))
        if self.path == "/moved":
            self.send_header("Location", f"{self.server.url}/token")
        self.end_headers()
        self.wfile.write(b"an answer")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        serving = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield made
        made.shutdown()
        serving.join()


def request(url: str) -> TokenRequest:
    return TokenRequest(url, {"Authorization": "Basic s3cret"}, b"grant_type=client_credentials")


def test_the_request_is_sent_as_it_is(server: Server) -> None:
    assert fetch_token(request(f"{server.url}/token")) == b"an answer"
    assert server.asked == [Asked("/token", "Basic s3cret", b"grant_type=client_credentials")]


@pytest.mark.parametrize(("path", "status"), [("/moved", 302), ("/other", 401)])
def test_another_status_is_an_error_without_the_secret(server: Server, path: str, status: int) -> None:
    with pytest.raises(OSError, match=rf"{path} answered with HTTP status {status}$") as raised:
        fetch_token(request(f"{server.url}{path}"))
    assert "s3cret" not in str(raised.value)
    assert [each.path for each in server.asked] == [path]


def test_nobody_listens() -> None:
    with pytest.raises(OSError, match=r"^http://127\.0\.0\.1:1 cannot be reached: "):
        fetch_token(request("http://127.0.0.1:1"))
