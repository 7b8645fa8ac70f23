"""One client of a run: does what its generator plans, and records what became of it. Shell plane, a thread.

What an operation's outcome is:

    the transaction was committed, the plain records were acknowledged      ok
    the commit was never asked for, or refused at once                      fail: the transaction is gone, the consumer goes back
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
"""How many records before the end a newly assigned consumer begins: undecided transactions are there."""
TRANSFORM_RECORDS = 50


@dataclass
class Connect:
    """How a worker gets its clients.

    Attributes:
        producer: by transactional id; None for a plain one.
        consumer: by group.
    """

    producer: Callable[[str | None], Producer]
    consumer: Callable[[str], ReadCommittedConsumer]


@dataclass
class Worker:
    """A client.

    Attributes:
        name: of the worker; its transactional ids and its own group begin with it.
        generator: what it does.
        recorder: where it is written down.
        connect: its way to the cluster.
        layout: which partition a key is.
        stopping: set when the run ends.
        group: the transforms' group.
        failure: what ended it, when nothing should have.
        refusal: why a producer could not be made, the last time.
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
        """Works until the run ends."""
        try:
            while not self.stopping.is_set():
                self._live()
        except BaseException as error:
            self.failure = error
        finally:
            self._drop()

    # --- a process --------------------------------------------------------------------------------------------------

    @property
    def _transactional_id(self) -> str | None:
        return None if self.generator.kind is Kind.PLAIN else f"{self.name}-{self._incarnation}"

    def _live(self) -> None:
        """One process, until it ends."""
        self.process = self.recorder.new_process()
        try:
            self._producer = self.connect.producer(self._transactional_id)
        except ProducerError as error:
            self.refusal = str(error)
            return  # nothing was done yet; the next process tries again
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
        """One operation; False when the process ends with it."""
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

    # --- operations -------------------------------------------------------------------------------------------------

    def _crash(self, plan: Plan) -> bool:
        """In the middle of a transaction, so that somebody has to end it."""
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
            # Some of them may be there.
            self.recorder.record(self.process, Outcome.INFO, "send", sends, error=error)
            return False
        done = [each._replace(offset=offset) for each, offset in zip(sends, offsets, strict=True)]
        self.recorder.record(self.process, Outcome.OK, "send", done)
        return True

    def _transform(self, plan: Plan) -> bool:
        """Consume, write one record for each, send the offsets along."""
        self.consumer.begin()
        metadata = self.consumer.group_metadata()  # before the poll: the generation the records were given in
        try:
            records = self.consumer.poll(POLL_SECONDS, TRANSFORM_RECORDS)
        except ConsumerFailed:
            return False  # nothing was begun
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
        """All steps up to the commit; `done` learns what the polls returned and where the records went."""
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
        """Somebody has taken the id: this commit must be refused."""
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
        """Nobody asked for the commit, or it was refused: the transaction is not there and never will be."""
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
