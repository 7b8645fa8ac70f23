"""Order lines are read from a file or generated; a file without order lines is rejected."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

import barnabas
from barnabas.client.admin import LATEST, Admin, TopicPartition, result
from barnabas.demo.feeder import (
    FIRST_LINES,
    Feed,
    FeedError,
    FeedProgress,
    count_lines,
    feed_lines,
    read_lines,
    with_late_orders,
)
from barnabas.demo.generator import COLUMNS, generate_lines
from barnabas.demo.shop import ORDERS, create_topics, records_per_partition
from barnabas.demo.shop_broker import ShopBroker

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
        create_topics(ShopBroker(broker.bootstrap_servers))
        done = feed_lines(ShopBroker(broker.bootstrap_servers), Feed(rows=400, seconds=16.0))
    assert done.lines == 400
    assert 15.9 < sum(waited) <= 16.0
    assert max(waited) < 0.1


def test_the_feeder_waits_after_the_first_lines():
    seen: list[int] = []
    with barnabas.Broker() as broker:
        create_topics(ShopBroker(broker.bootstrap_servers))

        def wait() -> None:
            partitions = range(ORDERS.partitions)
            with Admin(broker.bootstrap_servers) as admin:
                ends = admin.list_offsets(
                    dict.fromkeys((TopicPartition(ORDERS.name, each) for each in partitions), LATEST)
                )
            seen.append(sum(result(end).offset for end in ends.values()))

        assert (
            feed_lines(ShopBroker(broker.bootstrap_servers), Feed(rows=FIRST_LINES + 1), wait_after_first=wait).lines
            == 201
        )
    assert seen == [FIRST_LINES]


def test_a_feeder_that_was_killed_goes_on_without_sending_anything_twice():
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        create_topics(ShopBroker(servers))
        feed_lines(ShopBroker(servers), Feed(rows=300))
        first = records_per_partition(ShopBroker(servers))
        done = feed_lines(ShopBroker(servers), Feed(rows=900))
        both = records_per_partition(ShopBroker(servers))
    with barnabas.Broker() as broker:
        create_topics(ShopBroker(broker.bootstrap_servers))
        at_once = feed_lines(ShopBroker(broker.bootstrap_servers), Feed(rows=900))
        wanted = records_per_partition(ShopBroker(broker.bootstrap_servers))
    assert (done.lines, done.events) == (at_once.lines, at_once.events)
    assert both == wanted
    assert sum(first.values()) < sum(both.values())


def test_lines_that_are_there_already_take_no_time(monkeypatch):
    waited: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(waited), sleep=waited.append)
    with barnabas.Broker() as broker:
        create_topics(ShopBroker(broker.bootstrap_servers))
        feed_lines(ShopBroker(broker.bootstrap_servers), Feed(rows=600))
        monkeypatch.setattr("barnabas.demo.feeder.time", clock)
        feed_lines(ShopBroker(broker.bootstrap_servers), Feed(rows=800, seconds=16.0))
    assert 3.5 < sum(waited) <= 4.1, "a quarter of the lines in a quarter of the time"


def test_a_report_that_takes_long_makes_no_line_late(monkeypatch):
    """Whoever holds the feeder in a report does not get the lines of that time at once afterwards."""
    waited: list[float] = []
    held: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(waited) + sum(held), sleep=waited.append)
    monkeypatch.setattr("barnabas.demo.feeder.time", clock)

    def report(progress: FeedProgress) -> None:
        if progress.lines > 200 and not held:
            held.append(8.0)

    with barnabas.Broker() as broker:
        create_topics(ShopBroker(broker.bootstrap_servers))
        feed_lines(ShopBroker(broker.bootstrap_servers), Feed(rows=400, seconds=16.0), report)
    assert held
    assert 15.9 < sum(waited) <= 16.1


def test_late_orders_come_three_days_later_and_none_is_lost():
    lines = list(generate_lines(12_000))
    fed = list(with_late_orders(lines, 20))
    assert sorted(fed) == sorted(lines)
    newest, behind = "", set()
    for line in fed:
        if len(line[4]) == 19:
            newest = max(newest, line[4])
            if newest > line[4]:
                behind.add((datetime.fromisoformat(newest) - datetime.fromisoformat(line[4])).days)
    assert max(behind) >= 2, "as the clock reaches the third day"
    assert list(with_late_orders(lines, 0)) == lines
