"""Searches drawn from a seed, over topics with transactions, compaction and retention, compared with the log on disk.

A search goes on page after page, while records are appended and removed between the pages. Each page is compared with the files: its
records, their order, and what it says it has passed. Where compaction changed the files during a page, what is on both sides of the change
must be found, and nothing that is on neither.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from barnabas.client.admin import EARLIEST, Admin, NewTopic, TopicPartition, result
from barnabas.client.partitioner import partition_for
from barnabas.console.search.cursor import Cursor
from barnabas.console.search.query import Query
from barnabas.console.search.search import Limits, Outcome, run
from barnabas.console.search.span import PartitionSpan
from barnabas.console.search.verdict import verdict_of
from barnabas.decoding.decoder import Decoder
from tests.console.search.log_on_disk import Log, OnDisk, Region, in_order, log_on_disk

PATIENCE_SECONDS = 60
ORDERS, LATEST = "orders", "latest"
PARTITIONS = {ORDERS: 3, LATEST: 2}
_KEYS = [f"k{number}" for number in range(12)]
_CODECS = ("none", "gzip", "lz4", "zstd", "snappy")
_ANY_TIME = {"message.timestamp.after.max.ms": str(2**62)}
_COMPACTED = {
    **_ANY_TIME,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "0",
    "segment.ms": "60000",
}
FILTERS: dict[str, Callable[[OnDisk, dict[str, int] | None], bool]] = {
    "": lambda record, value: True,
    "value.n % 3 == 0": lambda record, value: value is not None and value["n"] % 3 == 0,
    'value.n > 40 && key == "k3"': lambda record, value: value is not None and value["n"] > 40 and record.key == b"k3",
    "value == null || value.n < 30": lambda record, value: value is None or value["n"] < 30,
    'has(headers.h) && headers.h == "1"': lambda record, value: dict(record.headers).get("h") == b"1",
    "partition == 1 && offset % 2 == 0": lambda record, value: record.partition == 1 and record.offset % 2 == 0,
}


class Played(NamedTuple):
    """What a run of searches has seen: pages compared record for record, and pages over which the files changed."""

    searches: int
    exact: int
    changed: int
    found: int
    removed: int
    empty: int


class Shop:
    """Two topics and those who write them.

    Args:
        now_ms: records are of this time and later, so that each round's are later than the markers of the rounds before: a segment
            that begins with a marker ends, too.
    """

    def __init__(self, bootstrap: str, data_dir: Path, dice: random.Random, now_ms: int) -> None:
        self.dice = dice
        self.data_dir = data_dir
        self.admin = Admin(bootstrap)
        self._bootstrap = bootstrap
        self.now_ms = now_ms
        self._time_ms = now_ms
        self._number = 0
        self._plain = {codec: self._producer({"compression.type": codec}) for codec in _CODECS}
        self._transactional = [self._producer({"transactional.id": f"t{each}"}) for each in range(2)]
        self._open: Producer | None = None

    def __repr__(self) -> str:
        return f"<Shop records={self._number}>"

    def _producer(self, settings: dict[str, str]) -> Producer:
        return Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 5, **settings})

    def fill(self, rounds: int) -> None:
        """Create the topics, and write until compaction has removed something."""
        self.admin.create_topics(
            [
                NewTopic(ORDERS, PARTITIONS[ORDERS], 1, configs={"retention.ms": "-1", **_ANY_TIME}),
                NewTopic(LATEST, PARTITIONS[LATEST], 1, configs=_COMPACTED),
            ]
        )
        for each in self._transactional:
            each.init_transactions(PATIENCE_SECONDS)
        for _ in range(rounds):
            self.append()
        self.leave_open()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any(self._has_gap(each) for each in log_on_disk(self.data_dir, LATEST).values()):
            assert time.monotonic() < deadline, "compaction removes nothing"
            time.sleep(0.05)

    @staticmethod
    def _has_gap(records: list[OnDisk]) -> bool:
        return bool(records) and records[-1].offset - records[0].offset + 1 > len(records)

    def append(self) -> None:
        """Append some records to each topic, in a transaction or without one."""
        kind = self.dice.choice(("plain", "plain", "commit", "abort"))
        if kind == "plain":
            producer = self._plain[self.dice.choice(_CODECS)]
            self._write(producer)
        else:
            producer = self.dice.choice(self._transactional)
            producer.begin_transaction()
            self._write(producer)
            if kind == "commit":
                producer.commit_transaction(PATIENCE_SECONDS)
            else:
                producer.abort_transaction(PATIENCE_SECONDS)
        # The next batch of the compacted topic is in a new segment.
        self._time_ms += 120_000

    def leave_open(self) -> None:
        """Begin a transaction and leave it; its partition's last stable offset stays below it."""
        self._open = self._producer({"transactional.id": "open", "transaction.timeout.ms": "600000"})
        self._open.init_transactions(PATIENCE_SECONDS)
        self._open.begin_transaction()
        self._open.produce(ORDERS, b'{"n": 1}', key=b"k1", partition=2, timestamp=self._time_ms)
        assert self._open.flush(PATIENCE_SECONDS) == 0

    def remove(self) -> None:
        """Remove the first records of a partition, as retention does."""
        where = TopicPartition(ORDERS, self.dice.randrange(PARTITIONS[ORDERS]))
        start = self.starts(ORDERS)[where.partition]
        end = result(self.admin.list_offsets({where: -1})[where]).offset
        self.admin.delete_records({where: min(start + self.dice.randrange(1, 12), end)})

    def starts(self, topic: str) -> dict[int, int]:
        """Return the first offset of each partition."""
        wanted = {TopicPartition(topic, each): EARLIEST for each in range(PARTITIONS[topic])}
        return {each.partition: result(found).offset for each, found in self.admin.list_offsets(wanted).items()}

    def log(self, topic: str) -> Log:
        """Return what can be read of a topic."""
        starts = self.starts(topic)
        return {
            partition: [each for each in records if each.offset >= starts[partition]]
            for partition, records in log_on_disk(self.data_dir, topic).items()
        }

    def close(self) -> None:
        """End the open transaction."""
        if self._open is not None:
            self._open.abort_transaction(PATIENCE_SECONDS)
        self.admin.close()

    def _write(self, producer: Producer) -> None:
        for _ in range(self.dice.randrange(1, 14)):
            topic = self.dice.choice((ORDERS, LATEST))
            key = self.dice.choice(_KEYS).encode()
            is_tombstone = topic == LATEST and self.dice.random() < 0.1
            value = None if is_tombstone else json.dumps({"n": self._number}).encode()
            headers: list[tuple[str, str | bytes | None]] | None = None
            if self.dice.random() < 0.5:
                headers = [("h", str(self.dice.randrange(3)).encode())]
            # Times go back now and then.
            timestamp = self._time_ms + self.dice.randrange(-30_000, 30_000) if topic == ORDERS else self._time_ms
            partition = partition_for(key, PARTITIONS[topic])
            assert partition is not None
            producer.produce(topic, value, key=key, partition=partition, timestamp=timestamp, headers=headers)
            self._number += 1
        assert producer.flush(PATIENCE_SECONDS) == 0


def drawn_query(dice: random.Random, now_ms: int) -> Query:
    """Return a query."""
    topic = dice.choice((ORDERS, LATEST))
    key = dice.choice(_KEYS) if dice.random() < 0.3 else None
    since, until = sorted(dice.sample(range(now_ms, now_ms + 4_000_000), 2))
    return Query(
        topic=topic,
        offset=dice.choice(("", "", "start", "+5", "-20", "7:40", ":-3", "0:end", "s@" + str(since))),
        partitions=(1,) if dice.random() < 0.15 else (),
        key=key,
        partitioner="murmur2_random" if key is not None and dice.random() < 0.5 else "",
        header=dice.choice(("", "", "", "h", "h:2")),
        since=str(since) if dice.random() < 0.2 else "",
        until=str(until) if dice.random() < 0.2 else "",
        filter=dice.choice(list(FILTERS)),
        limit=dice.choice((1, 3, 17, 60, 500)),
        order=dice.choice(("newest", "oldest")),
        isolation_level=dice.choice(("read_committed", "read_uncommitted")),
        control=dice.random() < 0.3,
        key_as="text",
        value_as="json",
    )


def play(shop: Shop, searches: int) -> Played:
    """Play searches; raise AssertionError at the first difference."""
    dice = shop.dice
    counts = [0, 0, 0, 0, 0]
    for number in range(searches):
        query = drawn_query(dice, shop.now_ms)
        if query.partitioner and query.partitions:
            query = replace(query, partitions=())
        pages = _play_one(shop, query, f"search {number}: {query.parameters()}")
        counts = [total + each for total, each in zip(counts, pages, strict=True)]
    return Played(searches, *counts)


def _play_one(shop: Shop, query: Query, what: str) -> list[int]:
    cursor: Cursor | None = None
    counts = [0, 0, 0, 0, 0]
    while True:
        before = shop.log(query.topic)
        starts = shop.starts(query.topic)
        outcome = run(shop.admin, query, Decoder(), shop.now_ms, cursor, limits=Limits(seconds=120))
        after = shop.log(query.topic)
        assert not outcome.failures, what
        olds = _olds(outcome, cursor, newest_first=query.is_newest_first)
        is_exact = before == after
        if is_exact:
            _check_exactly(query, olds, outcome, before, starts, what)
        else:
            _check_roughly(query, olds, outcome, before, after, what)
        if cursor is None and is_exact:
            again = run(shop.admin, query, Decoder(), shop.now_ms, limits=Limits(seconds=120))
            if shop.log(query.topic) == after:
                assert again.found == outcome.found, f"{what}: the same twice"
        counts = [counts[0] + is_exact, counts[1] + (not is_exact), counts[2] + len(outcome.found), *counts[3:]]
        if outcome.cursor is None:
            _check_end(outcome, what)
            verdict = verdict_of(outcome)
            return [*counts[:3], verdict.removed, verdict.empty]
        query, cursor = outcome.query, Cursor.of(outcome.cursor.text())
        if shop.dice.random() < 0.3:
            shop.dice.choice((shop.append, shop.remove))()


def _olds(outcome: Outcome, cursor: Cursor | None, *, newest_first: bool) -> dict[int, PartitionSpan]:
    """Return the spans as the page found them."""
    if cursor is not None:
        return {each.partition: each for each in cursor.spans}
    return {
        each.partition: PartitionSpan(
            each.partition,
            each.begin,
            each.end,
            each.stable_end,
            each.held_back,
            each.end if newest_first else each.begin,
        )
        for each in outcome.spans
    }


def _regions(olds: dict[int, PartitionSpan], outcome: Outcome) -> dict[int, Region]:
    regions = {}
    for new in outcome.spans:
        old = olds[new.partition]
        begin, end = sorted((old.position, new.position))
        regions[new.partition] = Region(begin, end, old.edge_ms)
    return regions


def _check_exactly(
    query: Query, olds: dict[int, PartitionSpan], outcome: Outcome, log: Log, starts: dict[int, int], what: str
) -> None:
    regions = _regions(olds, outcome)
    passed = in_order(log, regions, newest_first=query.is_newest_first)
    expected = [each for each in passed if passes(query, each)]
    found = [(each.partition, each.record.offset, each.record.key, each.record.value) for each in outcome.found]
    assert found == [(each.partition, each.offset, each.key, each.value) for each in expected], what
    for new in outcome.spans:
        old, region = olds[new.partition], regions[new.partition]
        here = [each for each in passed if each.partition == new.partition]
        control = sum(each.is_control for each in here)
        assert new.control - old.control == control, what
        assert new.records - old.records == len(here) - control, what
        gone = max(0, min(starts[new.partition], region.end) - region.begin)
        assert new.removed - old.removed == gone, what
        assert new.damaged == 0, what
    for each, wanted in zip(outcome.found, expected, strict=True):
        is_decided = each.record.offset < olds[each.partition].stable_end
        assert each.state.value == (wanted.outcome if is_decided else "held_back"), what
    if query.isolation_level == "read_committed":
        assert not any(each.outcome == "open" for each in passed), what


def _check_roughly(
    query: Query, olds: dict[int, PartitionSpan], outcome: Outcome, before: Log, after: Log, what: str
) -> None:
    """Compare a page during which the files changed: in any order, and between the two."""
    regions = _regions(olds, outcome)
    first, last = (
        {(each.partition, each.offset) for each in in_order(log, regions, newest_first=False) if passes(query, each)}
        for log in (before, after)
    )
    found = {(each.partition, each.record.offset) for each in outcome.found}
    assert len(found) == len(outcome.found), what
    assert first & last <= found <= first | last, what


def _check_end(outcome: Outcome, what: str) -> None:
    newest = outcome.query.is_newest_first
    verdict = verdict_of(outcome)
    assert verdict.read == verdict.wanted, what
    assert verdict.empty >= 0, what
    for each in outcome.spans:
        assert each.passed(newest_first=newest) == each.wanted, what
    assert verdict.is_complete == (not verdict.removed), what


def passes(query: Query, record: OnDisk) -> bool:
    """Return whether a record belongs to a query's results, without the search's own filters."""
    if query.since and record.timestamp < int(query.since):
        return False
    if query.until and record.timestamp >= int(query.until):
        return False
    if record.is_control:
        return query.control
    if query.isolation_level == "read_committed" and record.outcome == "aborted":
        return False
    if query.key is not None and record.key != query.key.encode():
        return False
    name, _, value = query.header.partition(":")
    if name and not any(each == name and (not value or held == value.encode()) for each, held in record.headers):
        return False
    data = None if record.value is None else json.loads(record.value)
    return FILTERS[query.filter](record, data)
