"""Long random lives of a share partition: its leader falls over, leadership moves, writes fail, are slow, or succeed unheard.

    members ──► SharePartitionManager ──► Store (a real ShareCoordinatorShard) ──► read again by the next leader

A record whose acceptance was confirmed is never delivered again, and none is lost: each one ends as confirmed, as acknowledged without an
answer, or with its deliveries used up.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.share.acknowledgement import Acknowledgement
from barnabas.share.fetch import ShareFetchParams
from barnabas.share.sessions import ShareSessionCache, TopicPartitionId
from barnabas.share.settings import ShareSettings
from barnabas.share.share_coordinator_shard import StateWrite
from barnabas.steps import start
from tests.replication.hosting import Hosting
from tests.share.state_store import LOCK_MS, Persister, Settings, Store, WatchedManager

ACCEPT, RELEASE, REJECT = 1, 2, 3
MEMBERS = ("a", "b", "c")
RECORDS = 150


class Life:
    """One topic, three members, and leaders that come and go."""

    def __init__(self, root: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.hosting = Hosting(root)
        self.topic_id = self.hosting.create_topic("q")
        self.id = TopicPartitionId(bytes(self.topic_id), 0)
        self.most = self.rng.choice((2, 3, 5))
        self.settings = Settings(self.most, self.rng.choice((20, 100, 2000)))
        self.store = Store(bytes(self.topic_id), self.rng, snapshots=self.rng.choice((1, 5, 500)))
        self.produced = 0
        self.confirmed: set[int] = set()
        self.unanswered: set[int] = set()
        self.spent: set[int] = set()
        self.held: dict[str, dict[int, int]] = {}
        """What each member has been given, and until when in ms."""
        self.persister: Persister | None = None
        self.manager: WatchedManager
        self.begin()

    def begin(self) -> None:
        """The leader falls over, without a word, and begins again."""
        if self.persister is not None:
            self.persister.dead = True
            self.manager.close()
            self.elect()
        self.persister = Persister(self.store, self.hosting.loop)
        self.manager = WatchedManager(
            self.hosting.replicas,
            persister=self.persister,
            settings=ShareSettings(self.settings),
            sessions=ShareSessionCache(10),
            loop=self.hosting.loop,
            now_ms=self.hosting.now_ms,
        )
        self.held = {member: {} for member in MEMBERS}

    def elect(self) -> None:
        """A new leader epoch, while writes of the one before may be on their way."""
        self.hosting.change(self.topic_id, leader=1)
        self.held = {member: {} for member in MEMBERS}

    def produce(self) -> None:
        count = min(self.rng.choice((1, 1, 5, 20)), RECORDS - self.produced)
        if count:
            self.hosting.append("q", *[b"%d" % (self.produced + index) for index in range(count)])
            self.produced += count

    def fetch(self, member: str, *, strict: bool, most: int) -> None:
        params = ShareFetchParams("g", member, 0, 1, 1 << 20, most, 10, strict, 0)
        future = start(self.manager.fetch(params, [self.id], 1), self.hosting.loop)
        held = self.held[member]
        future.add_done_callback(lambda done: self.deliver(held, done))
        self.hosting.advance(1)

    def deliver(self, held: dict[int, int], future: asyncio.Future[Any]) -> None:
        data = None if future.cancelled() else future.result().get(self.id)
        for part in () if data is None else data.acquired_records:
            assert 1 <= part.delivery_count <= self.most
            for offset in range(part.first_offset, part.last_offset + 1):
                assert offset < self.produced
                assert offset not in self.confirmed, f"{offset} was confirmed and is delivered again"
                held[offset] = self.hosting.now_ms() + LOCK_MS
                if part.delivery_count == self.most:
                    self.spent.add(offset)

    def acknowledge(self, member: str, kind: int) -> None:
        held = self.held[member]
        if not held:
            return
        first = last = self.rng.choice(sorted(held))
        while last + 1 in held and self.rng.random() < 0.8:
            last += 1
        offsets = range(first, last + 1)
        in_time = [offset for offset in offsets if self.hosting.now_ms() < held[offset]]
        batches = {self.id: [Acknowledgement(first, last, (kind,))]}
        future = start(self.manager.acknowledge("g", member, batches), self.hosting.loop)
        if kind != RELEASE:
            self.unanswered.update(offsets)

        def done(result: asyncio.Future[Any]) -> None:
            error = result.result()[self.id]
            for offset in offsets:
                if error is None or error.code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    held.pop(offset, None)
            if error is None and kind != RELEASE:
                self.confirmed.update(in_time)

        future.add_done_callback(done)
        if self.rng.random() < 0.7:
            self.hosting.advance(1)

    def step(self) -> None:
        member, kind = self.rng.choice(MEMBERS), self.rng.random()
        if kind < 0.1:
            self.produce()
        elif kind < 0.45:
            self.fetch(member, strict=self.rng.random() < 0.5, most=self.rng.randint(1, 30))
        elif kind < 0.85:
            self.acknowledge(member, self.rng.choice((ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT)))
        elif kind < 0.93:
            self.hosting.advance(self.rng.choice((10, 300, LOCK_MS + 1)))
        elif kind < 0.96:
            self.elect()
        elif kind < 0.98:
            self.begin()

    def finish(self) -> None:
        """No more trouble: everything that is left is delivered and accepted."""
        self.store.trouble = False
        while self.produced < RECORDS:
            self.produce()
        self.begin()
        for _ in range(RECORDS * 2):
            self.fetch("a", strict=False, most=50)
            while self.held["a"]:
                self.acknowledge("a", ACCEPT)
                self.hosting.advance(1)

    def close(self) -> None:
        self.manager.close()
        self.hosting.close()


@pytest.mark.parametrize("seed", range(15))
def test_confirmed_records_stay_finished_and_none_is_lost(seed: int, tmp_path: Path) -> None:
    life = Life(tmp_path, seed)
    for _ in range(400):
        life.step()
    life.finish()
    assert set(range(RECORDS)) - life.confirmed - life.unanswered - life.spent == set()
    shared = life.manager.shared
    assert shared.window is not None
    assert shared.window.start_offset == RECORDS
    summary = life.store.shard.summary(life.store.key).response
    lag = RECORDS - summary.start_offset - summary.delivery_complete_count
    assert 0 <= lag <= len(life.unanswered - life.confirmed), "only what was written unheard is not counted yet"
    life.close()


def test_an_election_fences_the_leader_before(tmp_path: Path) -> None:
    life = Life(tmp_path, 1)
    life.store.trouble = False
    life.hosting.append("q", b"x")
    life.produced = 1
    life.fetch("a", strict=False, most=1)
    assert life.persister is not None
    life.elect()
    life.fetch("b", strict=False, most=1)
    assert list(life.held["b"]) == [0]
    late = life.persister.write(life.store.key, StateWrite(1, 0, 1, 0, ()))
    error = start(late, life.hosting.loop).exception()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.FENCED_LEADER_EPOCH
    life.close()
