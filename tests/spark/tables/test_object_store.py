"""Tables in an object store on loopback: what a batch needs of it, two drivers, and a store that refuses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.spark.tables.batch_writer import BatchTable, commit_batch, is_written
from barnabas.spark.tables.delta_table import Delta
from barnabas.spark.tables.iceberg_table import Iceberg, open_catalog
from tests.spark.object_store import KEYS, object_store, reader_of
from tests.spark.tables.appending import append, files_named, rows_of, write_files

pytestmark = pytest.mark.conform


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with object_store() as url:
        yield url


def open_in(kind: str, url: str, folder: Path, place: str, keys: tuple[str, str] = KEYS) -> BatchTable:
    if kind == "delta":
        options = {
            "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": keys[0], "AWS_SECRET_ACCESS_KEY": keys[1],
        }  # fmt: skip
        return Delta.at(f"s3://{place}/delta", ("partition",), options)
    catalog = {
        "type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"s3://{place}/iceberg", "s3.endpoint": url,
        "s3.access-key-id": keys[0], "s3.secret-access-key": keys[1], "s3.region": "us-east-1",
    }  # fmt: skip
    return Iceberg("shop.orders", open_catalog(catalog), ("partition",))


def rows(first: int, count: int = 4) -> pa.Table:
    return pa.table(
        {"partition": pa.array([n % 2 for n in range(count)], pa.int32()), "offset": list(range(first, first + count))}
    )


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_each_record_once(store: str, tmp_path: Path, kind: str) -> None:
    """Two drivers have one batch: the store lets one of them commit, and the other one's files go."""
    place = f"lake/{tmp_path.name}"
    assert append(open_in(kind, store, tmp_path, place), rows(0), 0)
    assert not append(open_in(kind, store, tmp_path, place), rows(0), 0)
    drivers = [open_in(kind, store, tmp_path, place) for _ in range(2)]
    files = []
    for driver in drivers:
        assert not is_written(driver, "q", 1, None)
        files.append(write_files(driver, rows(4)))
    assert [commit_batch(driver, each, "q", 1) for driver, each in zip(drivers, files, strict=True)] == [True, False]
    assert sorted(rows_of(drivers[0])["offset"].to_pylist()) == list(range(8))
    assert len(files_named(drivers[0])) == 4


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_file_of_several_parts(store: str, tmp_path: Path, kind: str) -> None:
    """Stores take a large file in parts."""
    values = pa.array([random.Random(n).randbytes(4_000) for n in range(4_000)])
    large = pa.table({"partition": pa.array([0] * 4_000, pa.int32()), "value": values, "offset": list(range(4_000))})
    table = open_in(kind, store, tmp_path, f"lake/{tmp_path.name}")
    assert append(table, large, 0)
    found = rows_of(table).sort_by("offset")
    assert found["value"].to_pylist() == values.to_pylist()


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_bucket_that_is_absent(store: str, tmp_path: Path, kind: str) -> None:
    with pytest.raises(
        ValueError,
        match=r"the store of .* does not let the query read and write there: .*(NoSuchBucket|NO_SUCH_BUCKET)",
    ):
        append(open_in(kind, store, tmp_path, "nowhere"), rows(0), 0)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_bucket_that_only_lets_read(tmp_path: Path, kind: str) -> None:
    """An error before the first row, that names the bucket; what is there can be read."""
    with object_store() as url:
        full, new = f"lake/{tmp_path.name}", f"lake/{tmp_path.name}-new"
        assert append(open_in(kind, url, tmp_path, full), rows(0), 0)
        with reader_of(url) as keys:
            before = open_in(kind, url, tmp_path, full, keys)
            assert rows_of(before).num_rows == 4
            for place, batch in ((full, 1), (new, 0)):
                (tmp_path / place).mkdir(parents=True)
                table = open_in(kind, url, tmp_path if batch else tmp_path / place, place, keys)
                assert not is_written(table, "q", batch, None)
                with pytest.raises(
                    ValueError,
                    match=rf"the store of .*s3://{place}/.* does not let the query read and write there: "
                    r"(AccessDenied|ACCESS_DENIED)\. Check the place, the rights of the keys",
                ):
                    table.prepare(rows(4).schema)
            assert rows_of(before).num_rows == 4
