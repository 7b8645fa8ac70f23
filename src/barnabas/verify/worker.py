"""One client of a run: executes what its generator plans, and records the outcome. It runs in a thread.

The outcome of an operation:

    the transaction was committed, the plain records were acknowledged      ok
    no commit was requested, or it was rejected immediately                 fail: the transaction is aborted, the consumer rewinds
    anything else                                                           info, and the process ends

A process that ends is replaced by a new one, with a new producer and a new consumer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from barnabas.verify.consumer import ConsumerFailed, Layout, ReadCommittedConsumer
from barnabas.verify.generator import Generator, Kind, Plan, Step
from barnabas.verify.history import MicroOp, Offsets, Outcome, Poll, Send
from barnabas.verify.producers import Abortable, Producer, ProducerError, Refused, Unknown
from barnabas.verify.recorder import Recorder

POLL_SECONDS = 0.1
TAIL = 20
"""A newly assigned consumer begins this many records before the end, among undecided transactions."""
TRANSFORM_RECORDS = 50


@dataclass
class Connect:
    """Creates a worker's producers and consumers.

    Attributes:
        producer: from a transactional id; None for a plain producer.
        consumer: from a group.
    """

    producer: Callable[[str | None], Producer]
    consumer: Callable[[str], ReadCommittedConsumer]


@dataclass
class Worker:
    """A client.

    Attributes:
        name: of the worker; its transactional ids and its own group begin with it.
        generator: plans its operations.
        recorder: records its operations.
        connect: creates its producers and consumers.
        layout: maps keys to partitions.
        stopping: set when the run ends.
        group: the transforms' group.
        failure: an unexpected error that ended it.
        refusal: why the last attempt to create a producer failed.
    """

    name: str
    generator: Generator
    recorder: Recorder
    connect: Connect
    layout: Layout
    stopping: threading.Event
    group: str
    failure: BaseException | None = None
    refusal: str | None = None
    process: int = -1
    _producer: Producer | None = None
    _consumer: ReadCommittedConsumer | None = None
    _incarnation: int = 0

    def run(self) -> None:
        """Work until the run ends."""
        try:
            while not self.stopping.is_set():
                self._live()
        except BaseException as error:
            self.failure = error
        finally:
            self._drop()

    # A process
    @property
    def _transactional_id(self) -> str | None:
        return None if self.generator.kind is Kind.PLAIN else f"{self.name}-{self._incarnation}"

    def _live(self) -> None:
        """Run one process until it ends."""
        self.process = self.recorder.new_process()
        try:
            self._producer = self.connect.producer(self._transactional_id)
        except ProducerError as error:
            self.refusal = str(error)
            return  # no operation was recorded; the next process tries again
        transform = self.generator.kind is Kind.TRANSFORM
        self._consumer = self.connect.consumer(self.group if transform else f"{self.name}-{self.process}")
        plans: Iterator[Plan] = iter(self.generator)
        going_on = True
        while going_on and not self.stopping.is_set():
            going_on = self._do(next(plans))
        self._drop()

    def _drop(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _do(self, plan: Plan) -> bool:
        """Execute one operation; return False if it ends the process."""
        if plan.f == "crash":
            return self._crash(plan)
        if plan.f in ("assign", "subscribe"):
            return self._read_from(plan)
        if plan.f == "poll":
            return self._poll()
        if plan.f == "send":
            return self._send(plan)
        if plan.f == "transform":
            return self._transform(plan)
        return self._transaction(plan)

    @property
    def producer(self) -> Producer:
        assert self._producer is not None
        return self._producer

    @property
    def consumer(self) -> ReadCommittedConsumer:
        assert self._consumer is not None
        return self._consumer

    # Operations
    def _crash(self, plan: Plan) -> bool:
        """Crash in the middle of a transaction, which a successor or the timeout must end."""
        self.recorder.record(self.process, Outcome.INVOKE, "crash")
        if self.generator.kind is not Kind.PLAIN:
            sends = [Send(each.key, each.value) for each in self.generator.leftovers() if each.key is not None]
            self.recorder.record(self.process, Outcome.INVOKE, "txn", sends)
            try:
                self.producer.begin()
                offsets = self._send_all(sends)
                sends = [each._replace(offset=offset) for each, offset in zip(sends, offsets, strict=True)]
            except ProducerError:
                pass
            self.recorder.record(self.process, Outcome.FAIL, "txn", sends, error="crashed before the commit")
            if not plan.same_id:
                self._incarnation += 1
        self.recorder.record(self.process, Outcome.INFO, "crash")
        return False

    def _send_all(self, sends: list[Send]) -> list[int | None]:
        for each in sends:
            self.producer.send(*self.layout.place(each.key), str(each.value).encode())
        return self.producer.flush()

    def _read_from(self, plan: Plan) -> bool:
        self.recorder.record(self.process, Outcome.INVOKE, plan.f, keys=plan.keys)
        try:
            if plan.f == "assign":
                self.consumer.assign(plan.keys, None if plan.from_beginning else TAIL)
            else:
                self.consumer.subscribe(sorted({self.layout.place(key)[0] for key in plan.keys}))
        except ConsumerFailed as error:
            self.recorder.record(self.process, Outcome.FAIL, plan.f, keys=plan.keys, error=error)
            return True
        self.recorder.record(self.process, Outcome.OK, plan.f, keys=plan.keys)
        return True

    def _poll(self) -> bool:
        self.recorder.record(self.process, Outcome.INVOKE, "poll", [Poll({})])
        self.consumer.begin()
        try:
            found = [Poll(self.consumer.poll(POLL_SECONDS))]
        except ConsumerFailed as error:
            self.recorder.record(self.process, Outcome.INFO, "poll", error=error)
            return False
        self.recorder.record(self.process, Outcome.OK, "poll", found, rebalanced=self.consumer.rebalanced)
        return True

    def _send(self, plan: Plan) -> bool:
        sends = [Send(each.key, each.value) for each in plan.steps if each.key is not None]
        self.recorder.record(self.process, Outcome.INVOKE, "send", sends)
        try:
            offsets = self._send_all(sends)
        except ProducerError as error:
            # Some of them may be in the log.
            self.recorder.record(self.process, Outcome.INFO, "send", sends, error=error)
            return False
        done = [each._replace(offset=offset) for each, offset in zip(sends, offsets, strict=True)]
        self.recorder.record(self.process, Outcome.OK, "send", done)
        return True

    def _transform(self, plan: Plan) -> bool:
        """Consume, write one record for each, and send the offsets along."""
        self.consumer.begin()
        metadata = self.consumer.group_metadata()  # before the poll: the generation in which the records are read
        try:
            records = self.consumer.poll(POLL_SECONDS, TRANSFORM_RECORDS)
        except ConsumerFailed:
            return False  # no transaction has begun
        if not records or self.consumer.rebalanced:
            self._rewind()
            return True
        steps: list[Step] = []
        for key, pairs in records.items():
            target = plan.keys[key % len(plan.keys)]
            steps += (Step(target, next(self.generator.values)) for _ in pairs)
        polled = Poll(records)
        positions = Offsets(self.group, {key: pairs[-1][0] + 1 for key, pairs in records.items()})
        return self._in_transaction(Plan("txn", tuple(steps), abort=plan.abort), [polled], positions, metadata)

    def _transaction(self, plan: Plan) -> bool:
        self.consumer.begin()
        return self._in_transaction(plan, [], None, b"")

    def _in_transaction(self, plan: Plan, before: list[MicroOp], offsets: Offsets | None, metadata: bytes) -> bool:
        planned: list[MicroOp] = [Poll({}) if each.key is None else Send(each.key, each.value) for each in plan.steps]
        done = [*before, *planned]
        self.recorder.record(self.process, Outcome.INVOKE, "txn", done)
        try:
            self._body(done, len(before), offsets, metadata)
            if offsets is not None:
                done.append(offsets)
            if plan.abort:
                raise Abortable("on purpose")
            successor = self.connect.producer(self._transactional_id) if plan.f == "zombie" else None
        except (ProducerError, ConsumerFailed) as error:
            return self._give_up(done, error)
        if successor is not None:
            return self._as_zombie(done, successor)
        try:
            self.producer.commit()
        except (Abortable, Refused) as error:
            return self._give_up(done, error)
        except Unknown as error:
            self._complete(Outcome.INFO, done, error)
            return False
        self._complete(Outcome.OK, done)
        return True

    def _body(self, done: list[MicroOp], start: int, offsets: Offsets | None, metadata: bytes) -> None:
        """Execute all steps before the commit; put what the polls returned, and the records' offsets, into `done`."""
        self.producer.begin()
        sent: list[int] = []
        for place in range(start, len(done)):
            step = done[place]
            if isinstance(step, Send):
                self.producer.send(*self.layout.place(step.key), str(step.value).encode())
                sent.append(place)
            else:
                done[place] = Poll(self.consumer.poll(POLL_SECONDS))
        for place, offset in zip(sent, self.producer.flush(), strict=True):
            step = done[place]
            assert isinstance(step, Send)
            done[place] = step._replace(offset=offset)
        if offsets is not None:
            places = {self.layout.place(key): position for key, position in offsets.positions.items()}
            self.producer.send_offsets(places, metadata)

    def _as_zombie(self, done: list[MicroOp], successor: Producer) -> bool:
        """Commit after a successor has taken the id: the broker must reject it."""
        zombie, self._producer = self.producer, successor
        try:
            zombie.commit()
        except Unknown as error:
            self._complete(Outcome.INFO, done, f"zombie: {error}")
        except ProducerError as error:
            self._complete(Outcome.FAIL, done, f"zombie: {error}")
        else:
            self._complete(Outcome.OK, done)
        zombie.close()
        return False

    def _give_up(self, done: list[MicroOp], error: Exception) -> bool:
        """Abort: no commit was requested, or it was rejected, so the transaction is certainly not committed."""
        survives = isinstance(error, Abortable | ConsumerFailed)
        if survives:
            try:
                self.producer.abort()
            except ProducerError as second:
                error, survives = second, False
        self._complete(Outcome.FAIL, done, error)
        return survives and not isinstance(error, ConsumerFailed) and self._rewind()

    def _rewind(self) -> bool:
        try:
            self.consumer.rewind()
        except ConsumerFailed:
            return False
        return True

    def _complete(self, outcome: Outcome, done: list[MicroOp], error: object = None) -> None:
        self.recorder.record(
            self.process, outcome, "txn", done, rebalanced=self.consumer.rebalanced, error=error
        )  # fmt: skip
