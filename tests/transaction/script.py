"""Golden scripts of the transaction coordinator (see `tests.golden`).

    > commit a                                             `a` is a producer, and remembers its id and epoch, written ID/EPOCH
    log tx PrepareCommit 1000/1 [t:0] client=2             a record of `__transaction_state`, as it is appended
    marker t:0 COMMIT 1000/1                               a marker, as it is written to a partition
    a: commit NONE 1000/1                                  an answer
      tx CompleteCommit 1000/1                             the state of a transactional id, if it has changed

Clients speak transaction version 2 (KIP-890), where every end bumps the epoch, unless a command says `v1`.

Commands: see the methods `do_...`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.coordinator.coordinator_log import RecordSerde
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.record import iter_records
from barnabas.records.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.steps import start
from barnabas.transaction.marker_writer import Marker, TopicPartition
from barnabas.transaction.records import metadata_of
from barnabas.transaction.transaction_metadata import TransactionMetadata
from barnabas.transaction.transaction_shard import EndTxn, InitProducerId
from tests.coordinator.shards import shard_of
from tests.coordinator.virtual_loop import VirtualLoop
from tests.golden import Script, milliseconds, options
from tests.transaction.one_coordinator import Partitions, Subject

NOBODY = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class WrittenDown(Partitions):
    """Partitions that list their markers."""

    def __init__(self, loop: VirtualLoop, trace: Callable[[str], None]) -> None:
        super().__init__(loop)
        self.trace = trace

    async def write(self, marker: Marker, partition: TopicPartition) -> None:
        outcome = "COMMIT" if marker.commit else "ABORT"
        rejected = f" rejected {self.error.name}" if self.error else ""
        where = f"{partition[0]}:{partition[1]}"
        self.trace(f"marker {where} {outcome} {marker.producer_id}/{marker.producer_epoch}{rejected}")
        await super().write(marker, partition)


class TransactionScript(Script):
    def __init__(self) -> None:
        super().__init__()
        self.config: dict[str, int] = {}
        self.producers: dict[str, tuple[int, int]] = {}
        self.seen_batches = 0
        self.elections = 0
        self.serde = RecordSerde("transaction")
        self._subject: Subject | None = None

    @property
    def subject(self) -> Subject:
        if self._subject is None:
            self._subject = Subject(lambda loop: WrittenDown(loop, self._in_order), **self.config)
        return self._subject

    # -- commands ----------------------------------------------------------------------------------------------------

    def do_config(self, *words: str) -> None:
        """config NAME=TIME: before anything else"""
        self.config |= {name: milliseconds(value) for name, value in options(words).items()}

    def do_level(self, level: str) -> None:
        """level LEVEL: the finalized level of transaction.version, 2 by default"""
        self.subject.level = int(level)

    def do_init(self, producer: str, *words: str) -> None:
        """init PRODUCER [timeout=T] [again|as=ID/EPOCH]: InitProducerId for tx; `again`: with the id and epoch it has (KIP-360)"""
        given = options(words)
        timeout_ms = milliseconds(given.get("timeout", "60s"))
        expected = self._pair(producer, words) if "again" in words or "as" in given else None
        asked = InitProducerId("tx", timeout_ms, expected)

        def initialized(answer: Any) -> str:
            return self._takes(producer, answer)

        self._expect(f"{producer}: init", self.subject.coordinator.init_producer_id(asked), initialized)

    def do_add(self, producer: str, *words: str) -> None:
        """add PRODUCER TOPIC:PARTITION ... [v1] [as=ID/EPOCH]: AddPartitionsToTxn"""
        asked = self.subject.coordinator.add_partitions(
            "tx", *self._pair(producer, words), _partitions(words), _version(words)
        )
        self._expect(f"{producer}: add", asked)

    def do_verify(self, producer: str, *words: str) -> None:
        """verify PRODUCER TOPIC:PARTITION ... [as=ID/EPOCH]: a broker asks if the open transaction includes the partitions"""

        def verified(errors: dict[TopicPartition, ErrorCode]) -> str:
            return " ".join(f"{topic}:{index}={code.name}" for (topic, index), code in sorted(errors.items()))

        asked = self.subject.coordinator.verify_partitions("tx", *self._pair(producer, words), _partitions(words))
        self._expect(f"{producer}: verify", asked, verified)

    def do_commit(self, producer: str, *words: str) -> None:
        """commit PRODUCER [v1] [as=ID/EPOCH]: EndTxn"""
        self._end(producer, words, commit=True)

    def do_abort(self, producer: str, *words: str) -> None:
        """abort PRODUCER [v1] [as=ID/EPOCH]: EndTxn"""
        self._end(producer, words, commit=False)

    def do_advance(self, time: str) -> None:
        """advance TIME: let time pass"""
        self.subject.loop.advance(milliseconds(time))

    def do_failover(self) -> None:
        """failover: resign, and be elected again: what is known now is what the log has"""
        self.elections += 1
        self.subject.coordinator.on_resigned(0)
        self.subject.elect(self.elections)

    def do_markers(self, error: str = "") -> None:
        """markers [ERROR]: the partitions reject markers (without an error: take them again)"""
        self.subject.partitions.error = ErrorCode[error] if error else None

    def do_hold_commits(self) -> None:
        """hold-commits: what is appended from here is not committed until `release`"""
        self.subject.log.hold_commits = True

    def do_release(self) -> None:
        """release: what was held back is committed"""
        self.subject.log.release()

    # -- the trace ---------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        self.subject.loop.run_ready()
        self._trace_log()

    def states(self) -> dict[str, str]:
        transactions = shard_of(self.subject.coordinator).transactions
        return {name: _short(found) for name, found in transactions.items()}

    def _end(self, producer: str, words: tuple[str, ...], *, commit: bool) -> None:
        version = _version(words)
        asked = EndTxn("tx", *self._pair(producer, words), commit, version)

        def ended(answer: Any) -> str:
            return self._takes(producer, answer) if version >= 2 else ""

        name = "commit" if commit else "abort"
        self._expect(f"{producer}: {name}", self.subject.coordinator.end_transaction(asked), ended)

    def _takes(self, producer: str, answer: Any) -> str:
        self.producers[producer] = (answer.producer_id, answer.producer_epoch)
        return f"{answer.producer_id}/{answer.producer_epoch}"

    def _pair(self, producer: str, words: tuple[str, ...]) -> tuple[int, int]:
        given = options(words).get("as")
        if given is None:
            return self.producers.get(producer, NOBODY)
        producer_id, epoch = given.split("/")
        return int(producer_id), int(epoch)

    def _expect(self, what: str, asked: Any, show: Callable[[Any], str] = lambda answer: "") -> None:
        def done(future: asyncio.Future[Any]) -> None:
            error = future.exception()
            if error is None:
                self._in_order(f"{what} NONE {show(future.result())}".rstrip())
            else:
                assert isinstance(error, KafkaError), error
                self._in_order(f"{what} {error.code.name}")

        future = start(asked, self.subject.loop)
        if future.done():
            done(future)
        else:
            future.add_done_callback(done)

    def _in_order(self, line: str) -> None:
        """Trace what happens now, after the records that were appended before it."""
        self._trace_log()
        self.trace.append(line)

    def _trace_log(self) -> None:
        batches = self.subject.log.batches.get(0, [])
        for batch in batches[self.seen_batches :]:
            for record in iter_records(memoryview(batch)):
                assert record.key is not None
                decoded = self.serde.decode(record.key, record.value)
                name = decoded.key.transactional_id
                value = decoded.value
                self.trace.append(f"log {name} gone" if value is None else f"log {_whole(metadata_of(name, value))}")
        self.seen_batches = len(batches)


def _partitions(words: tuple[str, ...]) -> frozenset[TopicPartition]:
    named = (word.split(":") for word in words if ":" in word)
    return frozenset((topic, int(index)) for topic, index in named)


def _version(words: tuple[str, ...]) -> int:
    return 0 if "v1" in words else 2


def _short(found: TransactionMetadata) -> str:
    return f"{found.transactional_id} {found.state.title} {found.producer_id}/{found.producer_epoch}"


def _whole(found: TransactionMetadata) -> str:
    words = [_short(found)]
    if found.partitions:
        words.append(f"[{' '.join(f'{topic}:{index}' for topic, index in sorted(found.partitions))}]")
    if found.previous_producer_id not in (NO_PRODUCER_ID, found.producer_id):
        words.append(f"previous={found.previous_producer_id}")
    if found.next_producer_id != NO_PRODUCER_ID:
        words.append(f"next={found.next_producer_id}")
    return " ".join([*words, f"client={found.client_transaction_version}"])
