"""`barnabas schemas put`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.schemas_commands import INCOMPATIBLE, ORDER, PROTO, SECOND, schemas, written

USES_MONEY = 'syntax = "proto3";\nimport "money.proto";\nmessage Order {\n  Money price = 1;\n}\n'


def test_a_version_and_the_same_again(barnabas_registry: str, tmp_path: Path) -> None:
    first, second = written(tmp_path, ORDER), written(tmp_path, SECOND, "second.avsc")
    rows = []
    for file in (first, first, second, first):
        done = schemas(barnabas_registry, "put", "orders-value", file)
        assert done.exit_code == 0
        rows.append(done.stdout.splitlines()[1].split())
    assert rows == [
        ["orders-value", "1", "1", "registered"],
        ["orders-value", "1", "1", "unchanged"],
        ["orders-value", "2", "2", "registered"],
        ["orders-value", "1", "1", "unchanged"],
    ]


def test_references_by_name(barnabas_registry: str, tmp_path: Path) -> None:
    money, order = written(tmp_path, PROTO, "money.proto"), written(tmp_path, USES_MONEY, "order.proto")
    assert schemas(barnabas_registry, "put", "money", money).exit_code == 0
    refused = schemas(barnabas_registry, "put", "orders-value", order)
    assert (refused.exit_code, "the schema is not valid" in refused.stderr) == (1, True)
    words = ("--reference", "money.proto=money:1")
    assert schemas(barnabas_registry, "put", "orders-value", order, *words).stdout.split()[-2:] == ["2", "registered"]


def test_what_the_registry_rejects(barnabas_registry: str, tmp_path: Path) -> None:
    schemas(barnabas_registry, "put", "orders-value", written(tmp_path, ORDER))
    done = schemas(barnabas_registry, "put", "orders-value", written(tmp_path, INCOMPATIBLE))
    assert done.exit_code == 1
    assert "incompatible with an earlier one" in done.stderr
    done = schemas(barnabas_registry, "put", "orders-value", written(tmp_path, "{"))
    assert (done.exit_code, "the schema is not valid" in done.stderr) == (1, True)
