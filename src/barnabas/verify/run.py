"""One run: topics, clients, kills, final reads, verdict."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.client.admin import Admin
from barnabas.client.outcome import results
from barnabas.client.topics import NewTopic
from barnabas.security.client_security import ClientSecurity
from barnabas.verify.consumer import Layout, ReadCommittedConsumer
from barnabas.verify.faults import Killer, LocalBroker
from barnabas.verify.final_reads import read_committed_offsets, read_everything
from barnabas.verify.generator import Generator, Keys, Kind, numbers
from barnabas.verify.history import Outcome
from barnabas.verify.librdkafka_producer import LibrdkafkaProducer
from barnabas.verify.producers import Producer, ProducerError
from barnabas.verify.recorder import Recorder
from barnabas.verify.transactional_producer import TransactionalProducer, transaction_version
from barnabas.verify.verdict import Verdict, check
from barnabas.verify.worker import Connect, Worker

_GRACE_SECONDS = 30.0
_WARM_UP_SECONDS = 120.0


class CannotRun(Exception):
    """The run cannot begin, or an error that is not an anomaly ended it."""


@dataclass(frozen=True)
class Settings:
    """The settings of a run.

    Attributes:
        bootstrap: the cluster.
        timeout_ms: how long to wait for the cluster before and after the work.
        seconds: how long clients work, before the final reads.
        seed: of every choice of a client. A seed repeats a workload but not a run: threads and networks differ.
        protocol: of transactions; auto takes v2 if the cluster has finalized it.
        group_protocol: of consumers in groups, `classic` or `consumer` (KIP-848).
        plain, txn, transform: how many clients of each kind.
        partitions: of each of the three topics.
        replication_factor: -1 for the broker's default.
        transaction_timeout_ms: the broker aborts a crashed client's transaction after it.
        call_timeout_s: a producer's call ends within it; longer than a restart of the broker.
        kill_every_s: mean seconds between kills; 0 for none. Needs a broker.
        keep_topics: do not delete the topics at the end.
        security: TLS and the login of every client.
    """

    bootstrap: str
    timeout_ms: int = 30_000
    seconds: float = 60
    seed: int = 0
    protocol: str = "auto"
    group_protocol: str = "classic"
    plain: int = 2
    txn: int = 4
    transform: int = 2
    partitions: int = 2
    replication_factor: int = -1
    transaction_timeout_ms: int = 10_000
    call_timeout_s: float = 30
    kill_every_s: float = 0
    keep_topics: bool = False
    security: ClientSecurity | None = None


@dataclass(frozen=True)
class Progress:
    """The progress of a run: phase, seconds of work, operations by outcome, kills."""

    phase: str
    seconds: float
    ok: int
    fail: int
    info: int
    kills: int


@dataclass
class Run:
    """A run in progress.

    Attributes:
        settings: of the run.
        history_path: the file of the history; None keeps it in memory.
        broker: the broker to kill; None if the run did not start it.
        phase: its present work.
        interrupted_s: when Ctrl-C ended the work, in seconds after its begin; None if nothing did.
    """

    settings: Settings
    history_path: Path | None = None
    broker: LocalBroker | None = None
    phase: str = "creating topics"
    interrupted_s: float | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    _recorder: Recorder | None = None
    _work_began_s: float | None = None

    def progress(self) -> Progress:
        """Return how far the run is; other threads may ask."""
        counts = dict.fromkeys(Outcome, 0)
        found = dict(self._recorder.counts) if self._recorder is not None else {}
        for (f, outcome), count in found.items():
            if f in ("send", "poll", "txn"):
                counts[outcome] += count
        began = self._work_began_s
        seconds = 0.0 if began is None else min(time.monotonic() - began, self.settings.seconds)
        kills = found.get(("kill", Outcome.OK), 0)
        return Progress(self.phase, seconds, counts[Outcome.OK], counts[Outcome.FAIL], counts[Outcome.INFO], kills)

    def __call__(self) -> Verdict:
        """Run from beginning to end.

        Raises:
            CannotRun, BrokerFailed, KafkaError
        """
        settings = self.settings
        protocol = self._protocol()
        # Every run has topics, transactional ids and groups of its own.
        name = f"verify-{settings.seed}-{int(time.time() * 1000):x}"
        layout = Layout([f"{name}-{each}" for each in ("shared", "source", "sink")], settings.partitions)
        keys = Keys(*(layout.keys(topic) for topic in layout.topics))
        about = {
            "seed": settings.seed,
            "protocol": protocol,
            "topics": layout.topics,
            "partitions": settings.partitions,
        }
        try:
            recorder = self._recorder = Recorder(about, self.history_path)
        except OSError as error:
            raise CannotRun(f"cannot write {self.history_path}: {error.strerror}") from None
        try:
            with Admin(settings.bootstrap, timeout_ms=settings.timeout_ms, security=settings.security) as admin:
                replicas = settings.replication_factor
                results(admin.create_topics([NewTopic(each, settings.partitions, replicas) for each in layout.topics]))
            self.phase = "warming up"
            self._warm_up(protocol, name)
            self.phase = "working"
            self._work(recorder, layout, keys, protocol, name)
            self.phase = "reading everything back"
            self._read(recorder, layout, keys, f"{name}-group")
        finally:
            recorder.close()
        if not settings.keep_topics:
            with Admin(settings.bootstrap, timeout_ms=settings.timeout_ms, security=settings.security) as admin:
                admin.delete_topics(layout.topics)
        self.phase = "checking"
        return check(recorder.history())

    def _protocol(self) -> str:
        settings = self.settings
        transactional = settings.txn or settings.transform
        version = (
            transaction_version(settings.bootstrap, settings.timeout_ms, settings.security) if transactional else 0
        )
        if settings.protocol == "v2" and version < 2:
            raise CannotRun(f"the cluster has not finalized transaction.version 2 (it is at {version})")
        return ("v2" if version >= 2 else "v1") if settings.protocol == "auto" else settings.protocol

    def _warm_up(self, protocol: str, name: str) -> None:
        """Run one empty transaction: a new cluster creates its coordinator's topic then, which kills might prevent for ever."""
        if not self.settings.txn + self.settings.transform:
            return
        deadline = time.monotonic() + _WARM_UP_SECONDS
        while True:
            try:
                producer = self._producer(protocol, f"{name}-warm-up")
            except ProducerError as error:
                if time.monotonic() > deadline:
                    raise CannotRun(f"cannot create a transactional producer: {error}") from None
            else:
                producer.close()
                return

    def _work(self, recorder: Recorder, layout: Layout, keys: Keys, protocol: str, name: str) -> None:
        workers = list(self._workers(recorder, layout, keys, protocol, name))
        # Daemons: a call of a client library that never returns must not prevent the verdict.
        threads = [threading.Thread(target=each.run, name=each.name, daemon=True) for each in workers]
        killer = None
        if self.broker is not None and self.settings.kill_every_s:
            rng = random.Random(f"{self.settings.seed}-kills")
            killer = Killer(self.broker, recorder, self.settings.kill_every_s, rng, threading.Event())
            killing = threading.Thread(target=killer.run, name="kills")
            killing.start()
        for thread in threads:
            thread.start()
        began = self._work_began_s = time.monotonic()
        try:
            while (passed := time.monotonic() - began) < self.settings.seconds:
                failed = [each for each in workers if each.failure] or (killer is not None and killer.failure)
                if failed or self.stopping.wait(min(1.0, self.settings.seconds - passed)):
                    break
        except KeyboardInterrupt:  # Ctrl-C ends the work; the verdict follows
            self.interrupted_s = time.monotonic() - began
        if killer is not None:
            killer.stopping.set()
            killing.join()  # with the broker running
        self.stopping.set()
        deadline = time.monotonic() + self.settings.call_timeout_s + _GRACE_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        stuck = [each for each, thread in zip(workers, threads, strict=True) if thread.is_alive()]
        for each in stuck:
            recorder.record(
                each.process, Outcome.INFO, "stuck", error=f"a call of the client library does not return: {each.name}"
            )
        failures = [each.failure for each in workers] + [killer.failure if killer is not None else None]
        for failure in filter(None, failures):
            raise CannotRun(f"an unexpected error ended a client: {failure}") from failure
        if self.broker is not None:
            self.broker.check()
        # A run without a success proves nothing.
        for f, clients in (("send", self.settings.plain), ("txn", self.settings.txn + self.settings.transform)):
            if clients and not recorder.counts[f, Outcome.OK]:
                refusals = [each.refusal for each in workers if each.refusal]
                raise CannotRun(f"no {f} succeeded" + (f": {refusals[-1]}" if refusals else ""))

    def _workers(self, recorder: Recorder, layout: Layout, keys: Keys, protocol: str, name: str) -> Iterator[Worker]:
        settings = self.settings
        kinds = [Kind.PLAIN] * settings.plain + [Kind.TXN] * settings.txn + [Kind.TRANSFORM] * settings.transform
        connect = Connect(
            producer=lambda transactional_id: self._producer(protocol, transactional_id),
            consumer=lambda group: ReadCommittedConsumer(
                settings.bootstrap, layout, group, settings.group_protocol, security=settings.security
            ),
        )
        for number, kind in enumerate(kinds):
            rng = random.Random(f"{settings.seed}-{number}")
            yield Worker(
                name=f"{name}-{kind.value}-{number}",
                generator=Generator(kind, keys, rng, numbers(number, len(kinds))),
                recorder=recorder,
                connect=connect,
                layout=layout,
                stopping=self.stopping,
                group=f"{name}-group",
            )

    def _producer(self, protocol: str, transactional_id: str | None) -> Producer:
        options: dict[str, Any] = {
            "timeout_s": self.settings.call_timeout_s,
            "transaction_timeout_ms": self.settings.transaction_timeout_ms,
            "security": self.settings.security,
        }
        if transactional_id is None or protocol == "v1":
            return LibrdkafkaProducer(self.settings.bootstrap, transactional_id, **options)
        return TransactionalProducer(self.settings.bootstrap, transactional_id, **options)

    def _read(self, recorder: Recorder, layout: Layout, keys: Keys, group: str) -> None:
        # A broker looks for expired transactions every ten seconds.
        patience = self.settings.transaction_timeout_ms / 1000 + 30
        bootstrap, security = self.settings.bootstrap, self.settings.security
        read_everything(bootstrap, layout, keys.all, recorder, patience, security)
        if self.settings.transform:
            read_committed_offsets(bootstrap, layout, group, keys.source, recorder, patience, security)
