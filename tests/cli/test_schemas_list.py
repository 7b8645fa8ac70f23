"""`barnabas schemas list`."""

from __future__ import annotations

import json

import pytest

from barnabas.schemas.settings import RegistrySettings
from barnabas.schemas.subjects import Subjects
from tests.cli.schemas_commands import filled, schemas
from tests.schemas.conftest import server
from tests.schemas.registry_server import RegistryServer

__all__ = ["server"]


def test_what_there_is(barnabas_registry: str) -> None:
    assert schemas(barnabas_registry, "list").stdout == "SUBJECT  TYPE  VERSIONS  LATEST-ID  COMPATIBILITY\n"
    filled(barnabas_registry)
    assert schemas(barnabas_registry, "list").stdout.splitlines() == [
        "SUBJECT       TYPE  VERSIONS  LATEST-ID  COMPATIBILITY",
        "orders-value  AVRO  1,2       2          BACKWARD",
        "users-value   JSON  1         3          BACKWARD",
    ]
    assert json.loads(schemas(barnabas_registry, "list", "users", "-o", "json").stdout) == [
        {"subject": "users-value", "type": "JSON", "versions": [1], "latest_id": 3, "compatibility": "BACKWARD"}
    ]


def test_a_registry_that_does_not_tell_the_level(server: RegistryServer) -> None:
    server.add("orders-value", '"int"')
    assert schemas(server.url, "list").stdout.splitlines()[1].split() == ["orders-value", "AVRO", "1", "1", "-"]


def test_a_subject_that_is_deleted_meanwhile(server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subjects, "names", lambda _: ["absent"])
    assert schemas(server.url, "list").stdout.splitlines()[1:] == []
    assert repr(Subjects(RegistrySettings.of("http://h:1"))) == "<Subjects registry=http://h:1>"
