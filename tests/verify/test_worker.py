"""Which outcome a worker records for what its producer and consumer do."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from barnabas.verify.consumer import ConsumerFailed, Layout
from barnabas.verify.generator import Generator, Keys, Kind, Plan, Step
from barnabas.verify.history import Op, Outcome
from barnabas.verify.producers import Abortable, Refused, Unknown
from barnabas.verify.recorder import Recorder
from barnabas.verify.worker import Connect, Worker

SEND = Plan("send", steps=(Step(0, 1), Step(1, 2)))
TXN = Plan("txn", steps=(Step(0, 1), Step(None)))


class ScriptedProducer:
    """Raises what the script has for a call; notes all calls."""

    def __init__(self, transactional_id: str | None, script: dict[str, Exception]) -> None:
        self.transactional_id = transactional_id
        self.script = script
        self.calls: list[str] = []
        self.sent = 0

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.script:
            raise self.script[name]

    def begin(self) -> None:
        self._call("begin")

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._call("send")
        self.sent += 1

    def flush(self) -> list[int | None]:
        self._call("flush")
        sent, self.sent = self.sent, 0
        return list(range(sent))

    def send_offsets(self, positions: Mapping[tuple[str, int], int], group_metadata: bytes) -> None:
        self._call("send_offsets")

    def commit(self) -> None:
        self._call("commit")

    def abort(self) -> None:
        self._call("abort")

    def close(self) -> None:
        self._call("close")


class ScriptedConsumer:
    """Polls one record of key 0 each time, or fails."""

    def __init__(self, fails: bool) -> None:
        self.fails = fails
        self.rebalanced: set[int] = set()
        self.rewound = 0

    def begin(self) -> None:
        pass

    def poll(self, timeout_s: float, most: int = 200) -> dict[int, list[tuple[int, int]]]:
        if self.fails:
            raise ConsumerFailed("no")
        return {0: [(4, 9)]}

    def rewind(self) -> None:
        self.rewound += 1

    def group_metadata(self) -> bytes:
        return b""

    def assign(self, keys: Any, tail: int | None) -> None:
        pass

    def close(self) -> None:
        pass


class Planned(Generator):
    """Plans what a test says, and ends the run with the last plan."""

    def __init__(self, kind: Kind, plans: list[Plan], stopping: threading.Event) -> None:
        super().__init__(kind, Keys((0, 1), (0,), (1,)), random.Random(0), iter(range(100, 200)))
        self.plans = plans
        self.stopping = stopping

    def __iter__(self) -> Iterator[Plan]:
        while self.plans:
            plan = self.plans.pop(0)
            if not self.plans:
                self.stopping.set()
            yield plan


Ran = tuple[list[Op], list[ScriptedProducer], ScriptedConsumer]


@pytest.fixture
def ran() -> Callable[..., Ran]:
    def run(plan: Plan, kind: Kind = Kind.TXN, *, consumer_fails: bool = False, **script: Exception) -> Ran:
        stopping = threading.Event()
        producers: list[ScriptedProducer] = []
        consumer = ScriptedConsumer(consumer_fails)

        def connect(transactional_id: str | None) -> Any:
            producers.append(ScriptedProducer(transactional_id, {} if producers else script))
            return producers[-1]

        recorder = Recorder({})
        worker = Worker(
            "w", Planned(kind, [plan], stopping), recorder, Connect(connect, lambda group: consumer),  # type: ignore[arg-type, return-value]
            Layout(["t"], 2), stopping, "g",
        )  # fmt: skip
        worker.run()
        assert worker.failure is None, worker.failure
        return [op for op in recorder.history() if op.outcome is not Outcome.INVOKE], producers, consumer

    return run


def test_an_acknowledged_send_is_ok_with_its_offsets(ran: Callable[..., Ran]) -> None:
    (op,), (producer,), _ = ran(SEND, Kind.PLAIN)
    assert (op.outcome, [send.offset for send in op.sends]) == (Outcome.OK, [0, 1])
    assert producer.transactional_id is None


def test_a_send_without_an_acknowledgement_is_unknown(ran: Callable[..., Ran]) -> None:
    (op,), _, _ = ran(SEND, Kind.PLAIN, flush=Unknown("silence"))
    assert (op.outcome, op.error) == (Outcome.INFO, "silence")


def test_a_committed_transaction_is_ok_with_what_it_read(ran: Callable[..., Ran]) -> None:
    (op,), (producer,), _ = ran(TXN)
    assert (op.outcome, op.reads()) == (Outcome.OK, {0: [(4, 9)]})
    assert producer.calls == ["begin", "send", "flush", "commit", "close"]


@pytest.mark.parametrize(
    ("script", "outcome", "aborted"),
    [
        ({"flush": Abortable("late")}, Outcome.FAIL, True),
        ({"commit": Abortable("late")}, Outcome.FAIL, True),
        ({"commit": Refused("fenced")}, Outcome.FAIL, False),
        ({"commit": Unknown("silence")}, Outcome.INFO, False),
    ],
)
def test_the_outcome_of_a_failed_transaction(
    ran: Callable[..., Ran], script: dict[str, Exception], outcome: Outcome, aborted: bool
) -> None:
    (op,), (producer,), consumer = ran(TXN, **script)
    assert op.outcome is outcome
    assert ("abort" in producer.calls, consumer.rewound) == (aborted, int(aborted))


def test_a_transaction_aborted_on_purpose_fails_and_rewinds(ran: Callable[..., Ran]) -> None:
    (op,), (producer,), consumer = ran(Plan("txn", steps=(Step(0, 1),), abort=True))
    assert (op.outcome, op.error, consumer.rewound) == (Outcome.FAIL, "on purpose", 1)
    assert "commit" not in producer.calls


def test_a_failed_poll_aborts_the_transaction(ran: Callable[..., Ran]) -> None:
    (op,), (producer,), _ = ran(TXN, consumer_fails=True)
    assert op.outcome is Outcome.FAIL
    assert "abort" in producer.calls


@pytest.mark.parametrize(
    ("script", "outcome"),
    [({}, Outcome.OK), ({"commit": Refused("fenced")}, Outcome.FAIL), ({"commit": Unknown("?")}, Outcome.INFO)],
)
def test_a_zombie_commits_after_its_successor_has_the_id(
    ran: Callable[..., Ran], script: dict[str, Exception], outcome: Outcome
) -> None:
    (op,), (zombie, successor), _ = ran(Plan("zombie", steps=(Step(0, 1),)), **script)
    assert op.outcome is outcome
    assert zombie.transactional_id == successor.transactional_id
    assert zombie.calls[-2:] == ["commit", "close"]


def test_a_transform_sends_its_groups_offsets_along(ran: Callable[..., Ran]) -> None:
    (op,), (producer,), _ = ran(Plan("transform", keys=(1,)), Kind.TRANSFORM)
    assert op.outcome is Outcome.OK
    assert [(each.group, each.positions) for each in op.offsets] == [("g", {0: 5})]
    assert producer.calls == ["begin", "send", "flush", "send_offsets", "commit", "close"]


def test_a_crash_leaves_a_transaction_open(ran: Callable[..., Ran]) -> None:
    (txn, crash), (producer,), _ = ran(Plan("crash"))
    assert (txn.outcome, crash.outcome, crash.f) == (Outcome.FAIL, Outcome.INFO, "crash")
    assert producer.calls == ["begin", "send", "send", "flush", "close"]
