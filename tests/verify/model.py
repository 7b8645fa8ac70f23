"""A model of Kafka's logs with transactions, in memory, on which the real workload runs step by step; and bugs to plant in it.

The model is the reference: an append-only log for each key, transactions that write into it at once, a last stable offset, and
reads that stop there and leave aborted records out. Every client's next step is drawn from one seed, so transactions overlap in
the logs as they do on a broker.

A bug is a subclass that gets one thing wrong, now and then.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import count

from barnabas.verify.generator import Generator, Keys, Kind, Plan, numbers
from barnabas.verify.history import History, MicroOp, Offsets, Outcome, Poll, Send
from barnabas.verify.recorder import Recorder

KEYS = Keys(shared=(0, 1), source=(2, 3), sink=(4, 5))
BATCH = 4


@dataclass
class Entry:
    """A record, or a marker when the value is None."""

    value: int | None
    transaction: int | None


class Broker:
    """The logs, and who commits what."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.logs: dict[int, list[Entry]] = {key: [] for key in KEYS.all}
        self.state: dict[int, str] = {}
        self.committed: dict[int, int] = {}
        self.ids = count()

    def now_and_then(self) -> bool:
        return self.rng.random() < 0.05

    def begin(self) -> int:
        transaction = next(self.ids)
        self.state[transaction] = "open"
        return transaction

    def append(self, key: int, value: int, transaction: int | None) -> int:
        self.logs[key].append(Entry(value, transaction))
        return len(self.logs[key]) - 1

    def end(self, transaction: int, committed: bool) -> None:
        self.state[transaction] = "committed" if committed else "aborted"
        for log in self.logs.values():
            if any(each.transaction == transaction for each in log):
                log.append(Entry(None, None))

    def visible(self, key: int, entry: Entry) -> bool:
        return entry.value is not None and (entry.transaction is None or self.state[entry.transaction] == "committed")

    def stable(self, key: int) -> int:
        log = self.logs[key]
        is_open = {each for each, state in self.state.items() if state == "open"}
        return next((offset for offset, entry in enumerate(log) if entry.transaction in is_open), len(log))

    def read(self, key: int, position: int, most: int) -> tuple[list[tuple[int, int]], int]:
        found: list[tuple[int, int]] = []
        log, stable = self.logs[key], self.stable(key)
        while position < stable and len(found) < most:
            entry = log[position]
            if self.visible(key, entry) and entry.value is not None:
                found.append((position, entry.value))
            position += 1
        return found, position


class DropsARecord(Broker):
    """Acknowledges a record without appending it."""

    def append(self, key: int, value: int, transaction: int | None) -> int:
        if self.now_and_then():
            return len(self.logs[key])
        return super().append(key, value, transaction)


class CommitsAborted(Broker):
    """Takes an abort for a commit."""

    def end(self, transaction: int, committed: bool) -> None:
        super().end(transaction, committed or self.rng.random() < 0.3)


class AbortsCommitted(Broker):
    """Takes a commit for an abort, after it said it was one."""

    def end(self, transaction: int, committed: bool) -> None:
        super().end(transaction, committed and not self.now_and_then())


class ReadsUncommitted(Broker):
    """Forgets the isolation level."""

    def stable(self, key: int) -> int:
        return len(self.logs[key])

    def visible(self, key: int, entry: Entry) -> bool:
        return entry.value is not None


class LosesTheFilter(Broker):
    """Stops at the last stable offset and gives aborted records out."""

    def visible(self, key: int, entry: Entry) -> bool:
        return entry.value is not None


class AppendsTwice(Broker):
    """Does not know a repeated batch again."""

    def append(self, key: int, value: int, transaction: int | None) -> int:
        offset = super().append(key, value, transaction)
        if self.now_and_then():
            super().append(key, value, transaction)
        return offset


class TearsATransaction(Broker):
    """The marker of one partition says abort."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.torn: dict[int, int] = {}

    def end(self, transaction: int, committed: bool) -> None:
        super().end(transaction, committed)
        keys = [key for key, log in self.logs.items() if any(each.transaction == transaction for each in log)]
        if committed and len(keys) > 1 and self.rng.random() < 0.2:
            self.torn[transaction] = self.rng.choice(keys)

    def visible(self, key: int, entry: Entry) -> bool:
        return (
            super().visible(key, entry) and self.torn.get(-1 if entry.transaction is None else entry.transaction) != key
        )


class Truncates(Broker):
    """Loses the end of a log and gives its offsets out again."""

    def append(self, key: int, value: int, transaction: int | None) -> int:
        if self.rng.random() < 0.02:
            del self.logs[key][-2:]
        return super().append(key, value, transaction)


class SkipsARecord(Broker):
    """A fetch begins one record late."""

    def read(self, key: int, position: int, most: int) -> tuple[list[tuple[int, int]], int]:
        found, following = super().read(key, position, most)
        return (found[1:], following) if found and self.now_and_then() else (found, following)


class GoesBack(Broker):
    """A fetch begins before where it was asked to."""

    def read(self, key: int, position: int, most: int) -> tuple[list[tuple[int, int]], int]:
        if position > 3 and self.now_and_then():
            position -= 3
        return super().read(key, position, most)


class Reorders(Broker):
    """Two records of one client change places."""

    def append(self, key: int, value: int, transaction: int | None) -> int:
        log = self.logs[key]
        offset = super().append(key, value, transaction)
        if len(log) > 1 and log[-2].transaction == transaction is not None and self.rng.random() < 0.5:
            log[-2], log[-1] = log[-1], log[-2]
            return offset - 1
        return offset


class ForgetsOffsets(Broker):
    """A group's offsets do not take part in the transaction: they are lost half the time."""

    def now_and_then(self) -> bool:
        return self.rng.random() < 0.5


@dataclass
class Client:
    """A client between two steps."""

    generator: Generator
    recorder: Recorder
    broker: Broker
    rng: random.Random
    process: int = -1
    plan: Plan | None = None
    done: list[MicroOp] = field(default_factory=list)
    todo: list[MicroOp] = field(default_factory=list)
    transaction: int | None = None
    positions: dict[int, int] = field(default_factory=dict)
    before: dict[int, int] = field(default_factory=dict)

    def renew(self) -> None:
        if self.transaction is not None:
            self.broker.end(self.transaction, committed=False)
            self.transaction = None
        self.process = self.recorder.new_process()
        self.positions = {}
        self._start(self.generator.first())

    def step(self) -> None:
        if self.plan is None:
            self._start(self.generator.next())
        elif self.todo:
            self.done.append(self._micro(self.todo.pop(0)))
        else:
            self._finish()

    def _start(self, plan: Plan) -> None:
        if plan.f in ("assign", "subscribe"):
            # The model has no groups: who subscribes reads everything, from the group's offsets or the beginning.
            start = self.broker.committed if self.generator.kind is Kind.TRANSFORM else {}
            self.positions = {key: self.positions.get(key, start.get(key, 0)) for key in plan.keys}
            self.recorder.record(self.process, Outcome.INVOKE, plan.f, keys=plan.keys)
            self.recorder.record(self.process, Outcome.OK, plan.f, keys=plan.keys)
            return
        if plan.f == "crash":
            self.renew()
            return
        self.plan = plan
        self.before = dict(self.positions)
        self.done = []
        self.todo = [Poll({}) if each.key is None else Send(each.key, each.value) for each in plan.steps]
        if plan.f == "transform":
            polled = self._poll()
            self.done = [polled]
            self.todo = [
                Send(KEYS.sink[key % 2], next(self.generator.values))
                for key, found in polled.records.items()
                for _ in found
            ]
            if not self.todo:
                self.plan = None
                return
            self.todo.append(Offsets("g", {key: self.positions[key] for key in polled.records}))
        if plan.f not in ("send", "poll"):
            self.transaction = self.broker.begin()
        self.recorder.record(self.process, Outcome.INVOKE, self._f, [*self.done, *self.todo])

    @property
    def _f(self) -> str:
        assert self.plan is not None
        return self.plan.f if self.plan.f in ("send", "poll") else "txn"

    def _poll(self) -> Poll:
        found: dict[int, list[tuple[int, int]]] = {}
        for key in list(self.positions):
            records, self.positions[key] = self.broker.read(key, self.positions[key], BATCH)
            if records:
                found[key] = records
        return Poll(found)

    def _micro(self, micro: MicroOp) -> MicroOp:
        if isinstance(micro, Send):
            return micro._replace(offset=self.broker.append(micro.key, micro.value, self.transaction))
        return self._poll() if isinstance(micro, Poll) else micro

    def _finish(self) -> None:
        assert self.plan is not None
        plan, f = self.plan, self._f
        self.plan = None
        if self.transaction is None:
            self.recorder.record(self.process, Outcome.OK, f, self.done)
            return
        unknown = self.rng.random() < 0.1
        committed = not plan.abort and not (unknown and self.rng.random() < 0.5)
        transaction, self.transaction = self.transaction, None
        self.broker.end(transaction, committed)
        if committed and not (isinstance(self.broker, ForgetsOffsets) and self.broker.now_and_then()):
            for offsets in (each for each in self.done if isinstance(each, Offsets)):
                self.broker.committed.update(offsets.positions)
        outcome = Outcome.FAIL if plan.abort else Outcome.INFO if unknown else Outcome.OK
        self.recorder.record(self.process, outcome, f, self.done)
        if outcome is Outcome.FAIL:
            self.positions = self.before
        elif outcome is Outcome.INFO:
            self.renew()


def run(seed: int, broker_class: type[Broker] = Broker, steps: int = 3000) -> History:
    """The workload on the model, to the end of the final reads."""
    rng = random.Random(f"{broker_class.__name__}-{seed}")
    broker = broker_class(rng)
    ticks = count()
    recorder = Recorder({"seed": seed}, clock=lambda: next(ticks) * 1_000_000)
    kinds = [Kind.PLAIN, Kind.TXN, Kind.TXN, Kind.TXN, Kind.TRANSFORM]
    clients = [
        Client(Generator(kind, KEYS, rng, numbers(index, len(kinds))), recorder, broker, rng)
        for index, kind in enumerate(kinds)
    ]
    for client in clients:
        client.renew()
    for _ in range(steps):
        rng.choice(clients).step()
    for client in clients:
        if client.transaction is not None:
            broker.end(client.transaction, committed=False)
    for key in KEYS.all:
        found, _ = broker.read(key, 0, 1_000_000)
        recorder.record(99, Outcome.OK, "poll", [Poll({key: found})], keys=(key,), final=True)
    recorder.record(99, Outcome.OK, "committed", [Offsets("g", dict(broker.committed))], final=True)
    return recorder.history()
