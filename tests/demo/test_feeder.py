"""Order lines are read from a file or generated; a file without order lines is rejected."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace

import pytest

import barnabas
from barnabas.client.admin import LATEST, Admin, TopicPartition, result
from barnabas.demo.feeder import FIRST_LINES, Feed, FeedError, count_lines, feed_lines, read_lines
from barnabas.demo.generator import COLUMNS, generate_lines
from barnabas.demo.shop import ORDERS, create_topics

HEADER = ",".join(COLUMNS)
TEXT = f'{HEADER}\n1,2,"A, B",3,2010-12-01 08:26:00,4,,UK\n5,6\n'


@pytest.mark.parametrize("name", ["orders.csv", "orders.csv.gz"])
def test_lines_are_read_from_a_file(tmp_path: Path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(TEXT.encode()) if name.endswith("gz") else TEXT.encode())
    assert list(read_lines(Feed(path))) == [["1", "2", "A, B", "3", "2010-12-01 08:26:00", "4", "", "UK"], ["5", "6"]]
    assert len(list(read_lines(Feed(path, rows=1)))) == 1


def test_without_a_file_the_lines_are_generated(tmp_path):
    assert list(read_lines(Feed(rows=7, seed=2))) == list(generate_lines(7, seed=2))


@pytest.mark.parametrize("content", [b"", b"a,b,c\n1,2,3\n", b"\xff\xfe\x00"])
def test_a_file_without_order_lines_is_rejected(tmp_path, content):
    path = tmp_path / "orders.csv"
    path.write_bytes(content)
    with pytest.raises(FeedError, match=r"is not a file of order lines|cannot read"):
        list(read_lines(Feed(path)))


def test_a_gz_file_that_is_not_compressed_is_rejected(tmp_path):
    path = tmp_path / "orders.csv.gz"
    path.write_text(TEXT)
    with pytest.raises(FeedError, match="cannot read"):
        list(read_lines(Feed(path)))


def test_lines_are_counted_before_they_are_spread(tmp_path: Path):
    path = tmp_path / "orders.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    assert [count_lines(Feed(path)), count_lines(Feed(path, rows=1)), count_lines(Feed(path, rows=9))] == [2, 1, 2]
    assert [count_lines(Feed()), count_lines(Feed(rows=7))] == [50_000, 7]


def test_lines_are_spread_evenly_over_the_seconds(monkeypatch):
    now_s = 0.0
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now_s
        waited.append(seconds)
        now_s += seconds

    monkeypatch.setattr("barnabas.demo.feeder.time", SimpleNamespace(monotonic=lambda: now_s, sleep=sleep))
    with barnabas.Broker() as broker:
        create_topics(broker.bootstrap_servers)
        done = feed_lines(broker.bootstrap_servers, Feed(rows=400, seconds=16.0))
    assert done.lines == 400
    assert 15.9 < sum(waited) <= 16.0
    assert max(waited) < 0.1


def test_the_feeder_waits_after_the_first_lines():
    seen: list[int] = []
    with barnabas.Broker() as broker:
        create_topics(broker.bootstrap_servers)

        def wait() -> None:
            partitions = range(ORDERS.partitions)
            with Admin(broker.bootstrap_servers) as admin:
                ends = admin.list_offsets(
                    dict.fromkeys((TopicPartition(ORDERS.name, each) for each in partitions), LATEST)
                )
            seen.append(sum(result(end).offset for end in ends.values()))

        assert feed_lines(broker.bootstrap_servers, Feed(rows=FIRST_LINES + 1), wait_after_first=wait).lines == 201
    assert seen == [FIRST_LINES]
