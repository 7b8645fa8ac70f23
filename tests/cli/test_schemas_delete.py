"""`barnabas schemas delete`."""

from __future__ import annotations

import pytest

from barnabas.schemas.errors import SchemaNotFound
from barnabas.schemas.schema import Schema
from tests.cli.schemas_commands import ORDER, SECOND, filled, schemas


def test_it_asks_for_the_name(barnabas_registry: str) -> None:
    subjects = filled(barnabas_registry)
    for given in ("", "\n", "y\n", "orders\n"):
        done = schemas(barnabas_registry, "delete", "orders-value", given=given)
        assert done.exit_code == 1
        assert "Type the subject's name to delete all versions of orders-value: " in done.stderr
        assert (
            "error: nothing was deleted: that is not the subject's name (--yes deletes without asking)" in done.stderr
        )
    done = schemas(barnabas_registry, "delete", "orders-value", "--dry-run", "--permanent")
    assert done.stdout.splitlines()[1:] == [
        f"orders-value  {version}        would be deleted for good" for version in (1, 2)
    ]
    assert subjects.versions("orders-value") == [1, 2]
    done = schemas(barnabas_registry, "delete", "orders-value", given="orders-value\n")
    assert done.stdout.splitlines() == [
        "SUBJECT       VERSION  STATUS",
        "orders-value  1        deleted",
        "orders-value  2        deleted",
    ]
    assert subjects.names() == ["users-value"]
    assert subjects.schema(1) == Schema(ORDER)


def test_for_good(barnabas_registry: str) -> None:
    subjects = filled(barnabas_registry)
    done = schemas(barnabas_registry, "delete", "orders-value", "latest", "--permanent", "--yes")
    assert done.stdout.split()[-5:] == ["orders-value", "2", "deleted", "for", "good"]
    assert subjects.versions("orders-value") == [1]
    with pytest.raises(SchemaNotFound):
        subjects.schema(2)
    # What was deleted before can be deleted for good.
    subjects.delete("orders-value")
    assert schemas(barnabas_registry, "delete", "orders-value", "-y").exit_code == 1
    assert schemas(barnabas_registry, "delete", "orders-value", "-y", "--permanent").exit_code == 0
    assert subjects.put("orders-value", Schema(SECOND)).version == 1


def test_what_does_not_exist_and_what_is_needed(barnabas_registry: str) -> None:
    subjects = filled(barnabas_registry)
    done = schemas(barnabas_registry, "delete", "order-value", "-y")
    assert (done.exit_code, "did you mean orders-value?" in done.stderr) == (1, True)
    uses = Schema.from_json(
        {"schema": '"Order"', "references": [{"name": "Order", "subject": "orders-value", "version": 2}]}
    )
    subjects.put("uses", uses)
    done = schemas(barnabas_registry, "delete", "orders-value", "-y")
    assert done.exit_code == 1
    assert "Other schemas refer to version 2 of subject 'orders-value'" in done.stderr
