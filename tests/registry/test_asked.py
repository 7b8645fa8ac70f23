"""What a request asks, from its path, query and body."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.client.cluster import Cluster
from barnabas.registry.asked import Asked
from barnabas.registry.problems import Problem
from barnabas.registry.registry import Registry
from barnabas.registry.state import LATEST
from barnabas.schemas.schema import PROTOBUF, Reference, Schema

NOWHERE = Registry(lambda: Cluster("127.0.0.1:1"))


def asked(body: Any = None, query: dict[str, str] | None = None, **parts: str) -> Asked:
    return Asked(NOWHERE, {"subject": "s", **parts}, query or {}, json.dumps(body).encode())


def test_versions_and_ids() -> None:
    assert [asked(version=each).version() for each in ("1", "2147483647", "latest", "-1")] == [
        1,
        2**31 - 1,
        LATEST,
        LATEST,
    ]
    for version in ("0", "-2", "x", "2147483648", "٣"):
        with pytest.raises(Problem) as problem:
            asked(version=version).version()
        assert problem.value.code == 42202
    assert asked(id="7").schema_id() == 7


def test_a_part_of_a_list() -> None:
    found = list(range(10))
    assert asked(query={"offset": "2", "limit": "3"}).page(found) == [2, 3, 4]
    assert asked(query={"offset": "0", "limit": "-1"}).page(found) == found


def test_a_schema() -> None:
    reference = {"name": "a.proto", "subject": "a", "version": 1}
    body = {
        "schema": "text",
        "schemaType": "protobuf",
        "references": [reference],
        "id": -1,
        "version": 0,
        "metadata": None,
    }
    found = asked(body, {"normalize": "TRUE"}).registration()
    assert found.schema == Schema("text", PROTOBUF, (Reference("a.proto", "a", 1),))
    assert (found.subject, found.normalize, found.schema_id, found.version) == ("s", True, None, None)


def test_two_references_of_one_name() -> None:
    reference = {"name": "a.proto", "subject": "a", "version": 1}
    with pytest.raises(Problem, match="two references have one name"):
        asked({"schema": "text", "references": [reference, reference]}).registration()
