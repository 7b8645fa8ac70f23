"""The client of a registry's subjects, against answers of Confluent's registry and of others."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.schemas.errors import RegistryError
from barnabas.schemas.exchange import Answer, Exchange
from barnabas.schemas.schema import Schema
from barnabas.schemas.settings import RegistrySettings
from barnabas.schemas.subjects import Registered, Subjects
from tests.schemas.registry_server import RegistryServer

# As Confluent's registry 7.6 answers.
MESSAGES = [
    "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/1' in the new schema has no "
    "default value and is missing in the old schema', additionalInfo:'b'}",
    "{oldSchemaVersion: 1}",
    '{oldSchema: \'{"type":"record"}\'}',
    "{validateFields: 'false', compatibility: 'BACKWARD'}",
]
SCHEMA = Schema('"int"')


class Script:
    """Answers by path; a status alone is an error without a code."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]) -> None:
        self.asked: list[str] = []

        def ask(_: Exchange, path: str, body: Any = None, *, method: str | None = None) -> Answer:
            self.asked.append(f"{method or ('GET' if body is None else 'POST')} {path}")
            found = answers[self.asked[-1]]
            if type(found) is int:
                status = found if found < 1000 else found // 100
                found = {"error_code": found, "message": "no"} if status != found else None
                return Answer("http://h:1", status, found)
            return Answer("http://h:1", 200, found)

        monkeypatch.setattr(Exchange, "ask", ask)
        self.subjects = Subjects(RegistrySettings.of("http://h:1"))


def test_the_sentences_of_confluent(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "POST /compatibility/subjects/a%2Fb/versions?verbose=true"
    script = Script(monkeypatch, {path: {"is_compatible": False, "messages": MESSAGES}})
    assert script.subjects.problems("a/b", SCHEMA) == [
        "The field 'b' at path '/fields/1' in the new schema has no default value and is missing in the old schema"
    ]
    script = Script(monkeypatch, {path: {"is_compatible": False}})
    assert script.subjects.problems("a/b", SCHEMA) == ["the registry does not say why"]
    script = Script(monkeypatch, {path: {"is_compatible": True, "messages": []}})
    assert script.subjects.problems("a/b", SCHEMA) == []


@pytest.mark.parametrize("status", [404, 405])
def test_a_registry_that_compares_with_one_version(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    path = "POST /compatibility/subjects/a/versions"
    latest = f"{path}/latest?verbose=true"
    script = Script(
        monkeypatch, {f"{path}?verbose=true": status, latest: {"is_compatible": False, "messages": ["Why."]}}
    )
    assert script.subjects.problems("a", SCHEMA) == ["Why"]
    script = Script(monkeypatch, {f"{path}?verbose=true": status, latest: 40401})
    assert script.subjects.problems("a", SCHEMA) == []


def test_for_good_is_both_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    version = "DELETE /subjects/a/versions"
    script = Script(monkeypatch, {f"{version}/latest": [2], f"{version}/2?permanent=true": [2]})
    assert script.subjects.delete("a", "latest", permanent=True) == [2]
    script = Script(monkeypatch, {"DELETE /subjects/a": 40404, "DELETE /subjects/a?permanent=true": [1, 2]})
    assert script.subjects.delete("a", permanent=True) == [1, 2]
    assert script.asked == ["DELETE /subjects/a", "DELETE /subjects/a?permanent=true"]
    with pytest.raises(RegistryError, match="answers 40404 to a request for subject a: no"):
        script.subjects.delete("a")


def test_other_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RegistryError, match="other fields"):
        Script(monkeypatch, {"GET /subjects/a/versions/latest": []}).subjects.version("a")
    with pytest.raises(RegistryError, match="other fields"):
        Script(monkeypatch, {"GET /subjects": True}).subjects.names()


def test_registering_twice(server: RegistryServer) -> None:
    subjects = Subjects(RegistrySettings.of(server.url))
    assert subjects.put("a", SCHEMA) == Registered(1, 1, is_new=True)
    assert subjects.put("a", SCHEMA) == Registered(1, 1, is_new=False)
    assert server.requests[-1] == "POST /subjects/a"
