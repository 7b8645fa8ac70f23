"""An Iceberg table of a REST catalogue: written, audited, and what the catalogue refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyiceberg.exceptions import CommitStateUnknownException

import barnabas
from barnabas.client.admin import Admin, NewTopic, results
from barnabas.main import command_group
from barnabas.spark.tables.iceberg_catalog import open_catalog
from barnabas.spark.tables.iceberg_table import Iceberg
from tests.cli.test_commands import run
from tests.spark.tables.appending import append, rows_of
from tests.spark.tables.rest_catalogue import RestCatalogue, rest_catalogue

pytestmark = pytest.mark.slow


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[RestCatalogue]:
    with rest_catalogue(tmp_path) as serving:
        yield serving


def driver(catalogue: RestCatalogue) -> Iceberg:
    """Return the table as one more driver opens it."""
    return Iceberg("shop.orders", open_catalog(catalogue.properties), ("partition",))


def rows(first: int, **more: list[str]) -> pa.Table:
    columns = {"topic": ["orders"] * 2, "partition": pa.array([0, 1], pa.int32()), "offset": [first, first]}
    return pa.table(columns | more)


def test_a_table_is_written_and_audited(catalogue: RestCatalogue) -> None:
    """With a column more in its second batch, and a second driver that is late."""
    late = driver(catalogue)
    assert append(driver(catalogue), rows(0), 0)
    assert append(driver(catalogue), rows(1, note=["a", "b"]), 1)
    assert not append(late, rows(0), 1), "it finds the batch of the other driver"
    table = driver(catalogue)
    assert sorted(rows_of(table)["offset"].to_pylist()) == [0, 0, 1, 1]
    assert rows_of(table).sort_by("offset")["note"].to_pylist().count(None) == 2
    words = [word for pair in catalogue.properties.items() for word in ("--catalog", "=".join(pair))]
    assert run("lake", "compact", "--iceberg", "shop.orders", *words).output == "put 4 files together into 2\n"
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        results(admin.create_topics([NewTopic("orders", 2)]))
        for partition in ("0", "1"):
            given = ["produce", "orders", "-p", partition, "-b", broker.bootstrap_servers]
            assert CliRunner().invoke(command_group(), given, input="a\nb\n").exit_code == 0
        result = run("lake", "audit", "orders", "--iceberg", "shop.orders", *words, "-b", broker.bootstrap_servers)
    assert result.output.splitlines()[-1] == "valid: each of 4 committed records of orders is in the table once"


def test_the_answer_of_a_commit_is_lost(catalogue: RestCatalogue) -> None:
    """The batch fails, is repeated, and is there once."""
    assert append(driver(catalogue), rows(0), 0)
    catalogue.lost = 1
    with pytest.raises(CommitStateUnknownException):
        append(driver(catalogue), rows(1), 1)
    assert not append(driver(catalogue), rows(1), 1)
    assert sorted(rows_of(driver(catalogue))["offset"].to_pylist()) == [0, 0, 1, 1]


def test_a_catalogue_that_refuses_or_is_away_gives_one_sentence(catalogue: RestCatalogue) -> None:
    for wrong, sentence in (
        (
            {"token": "another"},
            f"the catalogue {catalogue.url} rejects the request: NotAuthorizedException: no such token",
        ),
        ({"uri": "http://127.0.0.1:9"}, "the catalogue http://127.0.0.1:9 does not answer"),
    ):
        words = [f"--catalog={name}={value}" for name, value in (catalogue.properties | wrong).items()]
        result = run("lake", "compact", "--iceberg", "shop.orders", *words)
        assert result.exit_code == 1
        assert sentence in " ".join(result.output.split())
