"""The HTTP of the faults, before an API that only says what it was asked."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import pytest

from barnabas.embedded import fault_server
from barnabas.embedded.fault_api import Reply
from barnabas.embedded.fault_server import FaultServer


class Echo:
    def answer(self, method: str, path: str, query: Mapping[str, str], body: object) -> Reply:
        if path == "/bug":
            raise AssertionError("a bug")
        if path == "/none":
            return Reply(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "no"}, ("GET",))
        return Reply(HTTPStatus.OK, [method, path, query, body])


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    found = FaultServer("127.0.0.1", 0)
    found.serve(Echo())  # type: ignore[arg-type]
    yield found
    found.close()


def ask(
    server: FaultServer, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Any, dict[str, str]]:
    connection = http.client.HTTPConnection(server.address)
    connection.request(method, path, body, dict(headers or {}))
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, json.loads(text) if text else None, dict(response.getheaders())


def test_a_request_reaches_the_api(server: FaultServer) -> None:
    status, value, headers = ask(server, "POST", "/faults?topic=a%20b&empty=", b'{"kind": "f\xc3\xa4il"}')
    assert (status, value) == (200, ["POST", "/faults", {"topic": "a b", "empty": ""}, {"kind": "fäil"}])
    assert headers["Content-Type"] == "application/json"
    assert ask(server, "DELETE", "/faults")[:2] == (200, ["DELETE", "/faults", {}, None])
    assert ask(server, "HEAD", "/faults")[:2] == (200, None)
    assert ask(server, "PUT", "/none")[2]["Allow"] == "GET"
    assert repr(server) == f"<FaultServer {server.address}>"


def test_a_connection_is_used_again(server: FaultServer) -> None:
    connection = http.client.HTTPConnection(server.address)
    for number in range(3):
        connection.request("POST", f"/{number}", b"{}")
        assert json.loads(connection.getresponse().read())[1] == f"/{number}"
    connection.close()


@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [
        ({"Host": "localhost:9900"}, False),
        ({"Host": "evil.example"}, True),
        ({"Origin": "http://127.0.0.1:9900"}, False),
        ({"Origin": "https://evil.example"}, True),
        ({"Origin": "null"}, True),
    ],
)
def test_no_other_site_reaches_it(server: FaultServer, headers: Mapping[str, str], is_refused: bool) -> None:
    status, value, _ = ask(server, "POST", "/nodes/1/kill", headers=headers)
    assert status == (403 if is_refused else 200)
    if is_refused:
        assert value["error"].startswith("this port answers to localhost alone, and not to another ")


@pytest.mark.parametrize(
    ("body", "headers", "status", "sentence"),
    [
        (b"{", {}, 400, "the body is not JSON: "),
        (b"\xff", {}, 400, "the body is not JSON: "),
        (b"[" * 60_000, {}, 400, "the body is not JSON: "),
        (b"", {"Content-Length": "99999999"}, 413, "send a body of at most 65536 bytes"),
        (b"", {"Content-Length": "-1"}, 413, "send a body of at most 65536 bytes"),
        (b"", {"Transfer-Encoding": "chunked"}, 411, "send the body with Content-Length, and not in chunks"),
    ],
)
def test_a_bad_body_is_a_sentence(
    server: FaultServer, body: bytes, headers: Mapping[str, str], status: int, sentence: str
) -> None:
    found, value, sent = ask(server, "POST", "/faults", body, headers)
    assert found == status
    assert value["error"].startswith(sentence)
    assert sent["Connection"] == "close"


def test_a_bug_and_bytes_that_are_no_request(server: FaultServer) -> None:
    assert ask(server, "GET", "/bug")[:2] == (500, {"error": "a bug of barnabas; standard error of the command has it"})
    assert ask(server, "BREW", "/")[0] == 501
    host, _, port = server.address.rpartition(":")
    with socket.create_connection((host, int(port))) as plain:
        plain.sendall(b"GET / HTTP/9.9\r\n\r\n")
        head, _, body = plain.makefile("rb").read().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 505 ")
        assert "error" in json.loads(body)


def test_too_many_connections_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_server, "CONNECTIONS", 1)
    server = FaultServer("127.0.0.1", 0)
    server.serve(Echo())  # type: ignore[arg-type]
    first = http.client.HTTPConnection(server.address)
    first.request("GET", "/")
    first.getresponse().read()
    assert ask(server, "GET", "/")[:2] == (503, {"error": "1 connections are open: close some first"})
    first.close()
    server.close()
