"""`barnabas schemas get`."""

from __future__ import annotations

import pytest

from barnabas.schemas.schema import Schema
from tests.cli.schemas_commands import ORDER, PROTO, SECOND, filled, schemas


def test_the_text_of_a_schema(barnabas_registry: str) -> None:
    subjects = filled(barnabas_registry)
    subjects.put("money", Schema(PROTO, "PROTOBUF"))
    for words, text in (
        (("orders-value",), SECOND),
        (("orders-value", "latest"), SECOND),
        (("orders-value", "1"), ORDER),
        (("--id", "1"), ORDER),
        (("money",), PROTO),
    ):
        done = schemas(barnabas_registry, "get", *words)
        assert (done.exit_code, done.stdout) == (0, text + "\n")
    for words, sentence in (
        (("order-value",), "did you mean orders-value?"),
        (("orders-value", "7"), "does not have version 7 of subject orders-value"),
        (("--id", "77"), "does not have schema 77"),
        (("something",), "`barnabas schemas list` shows which exist"),
    ):
        done = schemas(barnabas_registry, "get", *words)
        assert done.exit_code == 1
        assert sentence in done.stderr


@pytest.mark.parametrize("words", [(), ("orders-value", "--id", "1"), ("orders-value", "last"), ("orders-value", "0")])
def test_a_wrong_command_line(words: tuple[str, ...]) -> None:
    assert schemas("http://localhost:1", "get", *words).exit_code == 2
