"""Routes, media types, and requests that are not served."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.http_serving import HttpServer, listening_socket
from barnabas.registry.app import BODY_BYTES_MAX, registry_app
from barnabas.registry.registry import Registry
from tests.registry.asking import MEDIA_TYPE, PATIENCE_SECONDS, Asking

TOKEN = "a-token-of-the-test"


@pytest.fixture
def guarded(broker: barnabas.Broker, tmp_path: Path) -> Iterator[Asking]:
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN)
    registry = Registry(lambda: Cluster(broker.bootstrap_servers))
    ready = threading.Event()
    server = HttpServer(registry_app(registry, token_file=str(token_file)), ready.set)
    with listening_socket("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        assert ready.wait(PATIENCE_SECONDS)
        yield Asking(f"http://127.0.0.1:{listener.getsockname()[1]}")
        server.stop()
        thread.join()


def test_a_subject_may_have_any_name(registry: Asking) -> None:
    for name in ("a/b", "ä ö", "x%2Fy", ":.ctx:s", "a?b#c"):
        registry.register(name, '"int"')
        assert name in registry.get("/subjects")


def test_what_is_no_route(registry: Asking) -> None:
    assert registry.get("/") == {}
    assert registry.get("/contexts") == ["."]
    assert [registry.get(each) for each in ("/absent", "/subjects/s/other", "/subjects/s/versions/1/2/3")] == [404] * 3
    assert registry.delete("/subjects") == registry.put("/subjects/s") == 405


def test_a_body_that_is_too_long(registry: Asking) -> None:
    assert registry.ask("POST", "/subjects/s/versions", b" " * (BODY_BYTES_MAX + 1)) == 413


def test_another_host_and_another_site(registry: Asking) -> None:
    assert registry.text("GET", "/subjects", host="rebound.example")[0] == 403
    assert registry.text("GET", "/subjects", origin="https://site.example")[0] == 403


def test_errors_are_json_for_people(registry: Asking) -> None:
    status, text = registry.text("GET", "/subjects/%0A/versions")
    assert (status, json.loads(text)) == (404, {"error_code": 40401, "message": "Subject '\\n' not found."})


def test_a_token(guarded: Asking) -> None:
    assert guarded.get("/subjects") == 40101
    for shown, status in (("Bearer other", 401), ("Basic eDp5", 401), (f"Bearer {TOKEN}", 200)):
        assert guarded.text("GET", "/subjects", authorization=shown)[0] == status


def test_media_types() -> None:
    assert MEDIA_TYPE == "application/vnd.schemaregistry.v1+json"
