"""What a sweep deletes, and that it never deletes what a record names, however its steps and a producer's mix."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest

from barnabas.claims.claim import HEADER, digest, marker_of, parse_claim
from barnabas.claims.errors import ClaimError, NoClaims
from barnabas.claims.payloads import load_payload, store_payload
from barnabas.claims.sweep import Kind, Swept, TopicRecord, kind_of, sweep
from tests.claims.memory_store import MemoryStore

GRACE = 600_000
PREFIX = "c/videos"


class Topic:
    """A log in memory."""

    def __init__(self) -> None:
        self.records: list[TopicRecord] = []

    def send(self, value: bytes, mark: bytes | None = b"1") -> None:
        headers = [] if mark is None else [(HEADER, mark)]
        self.records.append(("videos", 0, len(self.records), headers, value))

    def read(self) -> Iterator[TopicRecord]:
        return iter(list(self.records))


def swept(
    store: MemoryStore, topic: Topic, *, dry_run: bool = False, took_ms: float = 0, without_claims: bool = True
) -> Swept:
    return sweep(
        store,
        [PREFIX],
        topic.read,
        now_ms=store.now_ms,
        grace_ms=GRACE,
        elapsed_ms=lambda: took_ms,
        without_claims=without_claims,
        dry_run=dry_run,
    )


def test_what_is_named_or_young_stays() -> None:
    store, topic = MemoryStore(), Topic()
    live = store_payload(store, PREFIX, b"live")
    orphan = store_payload(store, PREFIX, b"orphan")
    elsewhere = store_payload(store, "c/other", b"orphan")
    store.put(f"{PREFIX}/unfinished/1", b"half")
    store.put(f"{PREFIX}/README", b"mine")
    topic.send(live.encoded())
    topic.send(b"small", None)
    topic.send(b"broken")
    store.now_ms += GRACE + 1
    young = store_payload(store, PREFIX, b"young")
    store.put(f"{PREFIX}/unfinished/2", b"half")
    wanted = Swept(
        records=3, claims=1, invalid_claims=1, payloads=3, young=1, named=1, deleted=1, deleted_bytes=6, unfinished=1, others=1
    )  # fmt: skip
    before = dict(store.files)
    assert swept(store, topic, dry_run=True) == wanted
    assert store.files == before
    assert swept(store, topic) == wanted
    assert set(store.files) == {
        live.path, young.path, elsewhere.path, f"{PREFIX}/unfinished/2", f"{PREFIX}/README", marker_of(orphan.path)
    }  # fmt: skip


def test_a_marker_goes_when_it_is_old_and_its_payload_is_not_there() -> None:
    store, topic = MemoryStore(), Topic()
    orphan = store_payload(store, PREFIX, b"orphan")
    store.now_ms += GRACE + 1
    assert swept(store, topic).deleted == 1
    assert list(store.files) == [marker_of(orphan.path)]
    swept(store, topic)
    assert list(store.files) == [marker_of(orphan.path)]
    store.now_ms += GRACE + 1
    again = store_payload(store, PREFIX, b"orphan")
    assert again.path == f"{orphan.path}-1"
    topic.send(again.encoded())
    swept(store, topic)  # the first name was written, too, and may come again: its marker stays
    assert set(store.files) == {marker_of(orphan.path), orphan.path, again.path}
    store.now_ms += GRACE + 1
    assert swept(store, topic).deleted == 1
    store.now_ms += GRACE + 1
    swept(store, topic)
    assert list(store.files) == [again.path]


def test_a_claim_of_a_newer_format_stops_the_sweep() -> None:
    store, topic = MemoryStore(), Topic()
    store_payload(store, PREFIX, b"orphan")
    topic.send(b"?", b"2")
    store.now_ms += GRACE + 1
    with pytest.raises(
        ClaimError, match=r"the claim of videos-0@0 is not valid: its format is '2'.*; nothing was deleted"
    ):
        swept(store, topic)
    assert len(store.files) == 1


def test_old_payloads_and_no_claim_look_like_the_store_of_another_cluster() -> None:
    store, topic = MemoryStore(), Topic()
    orphan = store_payload(store, PREFIX, b"orphan")
    topic.send(b"small", None)
    assert swept(store, topic, without_claims=False).young == 1
    store.now_ms += GRACE + 1
    for dry_run in (True, False):
        with pytest.raises(NoClaims, match="there is no claim in 1 records, and the store has 1 old payloads"):
            swept(store, topic, without_claims=False, dry_run=dry_run)
    assert list(store.files) == [orphan.path]


def test_a_sweep_that_takes_longer_than_its_grace_stops() -> None:
    store, topic = MemoryStore(), Topic()
    orphan = store_payload(store, PREFIX, b"orphan")
    store.now_ms += GRACE + 1
    with pytest.raises(ClaimError, match="took longer than its grace"):
        swept(store, topic, took_ms=GRACE + 1)
    assert orphan.path in store.files


def test_nothing_is_deleted_where_claims_are_of_another_store() -> None:
    store, topic = MemoryStore(), Topic()
    topic.send(store_payload(MemoryStore(), PREFIX, b"elsewhere").encoded())
    store.put(f"{PREFIX}/unfinished/1", b"half")
    store.now_ms += GRACE + 1
    found = swept(store, topic)
    assert (found.claims, found.payloads, found.unfinished) == (1, 0, 0)
    assert len(store.files) == 1


def test_kinds() -> None:
    name = digest(b"")
    assert kind_of("c/t", f"c/t/{name}") is Kind.PAYLOAD
    assert kind_of("c/t", f"c/t/condemned/{name}-1") is Kind.MARKER
    assert kind_of("c/t", "c/t/unfinished/1") is Kind.UNFINISHED
    assert kind_of("c/t", "c/t/condemned/x") is Kind.OTHER
    assert kind_of("c/t", "c/t/a/b/c") is Kind.OTHER


class Killed(Exception):
    """Ends a sweep where SIGKILL would: the sweep has no clean-up that could run."""


class MortalStore(MemoryStore):
    """A store that dies in its n-th write, before or after it has its effect."""

    def __init__(self, store: MemoryStore, writes: int, *, after: bool) -> None:
        self.__dict__ = store.__dict__ | {"left": writes, "after": after}

    def put(self, path: str, payload: bytes, *, durable: bool = True) -> None:
        self._die(before=True)
        super().put(path, payload, durable=durable)
        self._die(before=False)

    def delete(self, path: str) -> None:
        self._die(before=True)
        super().delete(path)
        self._die(before=False)

    def _die(self, *, before: bool) -> None:
        self.left -= before
        if self.left == 0 and before != self.after:
            raise Killed


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_write_of_a_sweep_is_mended_by_the_next(after: bool) -> None:
    total = 8  # three payloads with a marker each, a marker that is old, an unfinished file
    for writes in range(1, total + 1):
        store, topic = MemoryStore(), Topic()
        live = store_payload(store, PREFIX, b"live")
        topic.send(live.encoded())
        for number in range(3):
            store_payload(store, PREFIX, b"orphan %d" % number)
        store.put(f"{PREFIX}/unfinished/1", b"half")
        store.put(marker_of(f"{PREFIX}/{digest(b'gone')}"), b"")
        store.now_ms += GRACE + 1
        with pytest.raises(Killed):
            swept(MortalStore(store, writes, after=after), topic)
        again = store_payload(store, PREFIX, b"orphan 0")
        topic.send(again.encoded())
        swept(store, topic)
        for _, _, _, headers, value in topic.records:
            claim = parse_claim(headers, value)
            assert claim is not None
            load_payload(store, claim)
        for _ in range(2):
            store.now_ms += GRACE + 1
            swept(store, topic)
        assert {path for path in store.files if "/condemned/" not in path} == {live.path, again.path}
    assert swept(MortalStore(MemoryStore(), 0, after=after), Topic()).payloads == 0


SWEEP_STEPS = 5
"""List, read the log, write the marker, look again, delete."""
PRODUCER_STEPS = 5
"""Write, look for the marker; both again if it is there; send."""


class Turns:
    """Lets threads take their steps in a given order: one runs, from its step to the next one."""

    def __init__(self, order: list[str]) -> None:
        self._left = order
        self._running: str | None = None
        self._changed = threading.Condition()

    def step(self, who: str) -> None:
        with self._changed:
            self._pass_on(who)
            assert self._changed.wait_for(lambda: self._running is None and self._left[0] == who, timeout=30)
            self._running = self._left.pop(0)

    def end(self, who: str) -> None:
        with self._changed:
            self._left[:] = [each for each in self._left if each != who]
            self._pass_on(who)

    def _pass_on(self, who: str) -> None:
        if self._running == who:
            self._running = None
        self._changed.notify_all()


class SteppedStore:
    """A store whose every call waits for its turn."""

    def __init__(self, store: MemoryStore, step: Callable[[], None]) -> None:
        self._store = store
        self._step = step

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def stepped(*arguments: Any, **options: Any) -> Any:
            self._step()
            done = found(*arguments, **options)
            return iter(list(done)) if name == "list" else done

        return stepped


@pytest.mark.parametrize("was_sent_before", [False, True])
def test_no_order_of_steps_deletes_what_is_sent(was_sent_before: bool) -> None:
    """A producer stores a payload again that an old one has orphaned, while a sweep is about to delete it."""
    names: Counter[str] = Counter()
    total = SWEEP_STEPS + PRODUCER_STEPS
    for at in combinations(range(total), SWEEP_STEPS):
        store, topic = MemoryStore(), Topic()
        old = store_payload(store, PREFIX, b"again")
        if was_sent_before:
            topic.send(old.encoded())
        store.now_ms += GRACE + 1
        turns = Turns(["sweep" if place in at else "producer" for place in range(total)])

        def produce(store: Any = store, topic: Topic = topic, turns: Turns = turns) -> None:
            claim = store_payload(SteppedStore(store, lambda: turns.step("producer")), PREFIX, b"again")
            turns.step("producer")
            topic.send(claim.encoded())
            turns.end("producer")

        def clean(store: Any = store, topic: Topic = topic, turns: Turns = turns) -> None:
            def read() -> Iterator[TopicRecord]:
                turns.step("sweep")
                return topic.read()

            seen: Any = SteppedStore(store, lambda: turns.step("sweep"))
            sweep(seen, [PREFIX], read, now_ms=store.now_ms, grace_ms=GRACE, elapsed_ms=lambda: 0, without_claims=True)
            turns.end("sweep")

        threads = [threading.Thread(target=each) for each in (produce, clean)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(30)
        assert len(topic.records) == 1 + was_sent_before
        for _, _, _, headers, value in topic.records:
            claim = parse_claim(headers, value)
            assert claim is not None
            assert load_payload(store, claim) == b"again", at
        names["again" if claim.path == old.path else "another name"] += 1
    # Both ways out were taken, unless a record kept the payload.
    assert set(names) == ({"again"} if was_sent_before else {"again", "another name"})
