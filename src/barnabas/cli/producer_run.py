"""Send records with librdkafka and count the acknowledged ones."""

from __future__ import annotations

import contextlib
import functools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import click
from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import KafkaException, Message, Producer

from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import connected, library_failure
from barnabas.cli.lines import Lines
from barnabas.cli.output import Table
from barnabas.cli.partition_choice import PartitionChoice, may_choose
from barnabas.cli.progress import InputFile, Measured, rate
from barnabas.cli.record_format import Headers
from barnabas.cli.record_limit import DEFAULT_BYTES, batch_settings, too_large, topic_limit
from barnabas.cli.record_reader import Common, Given, Pair
from barnabas.cli.session import Session, parse_pairs
from barnabas.cli.wording import were
from barnabas.protocol.errors import ErrorCode, KafkaError

_TYPED_S = 2.0
"""How long to wait for the acknowledgement of a typed record; the next one may be typed meanwhile."""

_COUNTED_RECORDS = 1000
_LOOK_TIMEOUT_S = 1.0


class _Refused(NamedTuple):
    """The first record that was not produced.

    Attributes:
        partition: that was asked for; negative if none was.
        number: of the record in the input, from 1; 0 if it is not known.
        size: bytes of key, value and headers; 0 if it is not known.
        local: the library rejected it; else the broker did.
    """

    error: LibraryError
    topic: str
    partition: int
    number: int
    size: int
    local: bool


class ProducerRun:
    """One producer from the first record to the last acknowledgement.

    Args:
        limit_bytes: the topic's `max.message.bytes`; None if it is not known.
        leaders: the leader of each of the topic's partitions, for `send_lines`. If they are given, the command chooses the partitions,
            and the library reports only records that fail: the others are acknowledged when it has no more.
    """

    def __init__(
        self,
        session: Session,
        topic: str | None,
        extra: tuple[str, ...],
        options: dict[str, Any],
        limit_bytes: int | None = None,
        leaders: Sequence[int] = (),
    ) -> None:
        settings = {name: value for name, value in options.items() if value is not None}
        settings["message.timeout.ms"] = session.timeout_ms
        settings |= batch_settings(limit_bytes, session.properties)
        self._choice: PartitionChoice | None = None
        if leaders and may_choose(settings["partitioner"], {**session.properties, **parse_pairs(extra, "-X")}):
            self._choice = PartitionChoice(settings["partitioner"], leaders, self._leaders)
            settings["delivery.report.only.error"] = True
        self._reports_failures_only = self._choice is not None
        self._producer: Producer = connected(Producer, session, extra, settings)
        self._session = session
        self._topic = topic
        self._limit_bytes = limit_bytes
        # Only a batch of one record can be too large for the topic: batches of several end below the limit.
        self._numbered_bytes = 0 if limit_bytes is None else min(limit_bytes, DEFAULT_BYTES) // 2
        self._partitions: Counter[tuple[str, int]] = Counter()
        self._bytes = 0
        self._acknowledged: list[Message] = []
        """Records that are not yet counted."""
        self._sent: Counter[int] = Counter()
        self._lost: Counter[int] = Counter()
        """By partition, where the command chooses it: records that the library took, and those of them that were not acknowledged."""
        self._sent_bytes = 0
        self._lost_bytes = 0
        self._gives_up = False
        self._refused: _Refused | None = None
        self._failed = 0
        self._read = 0
        self._read_bytes = 0
        self._ended = False
        self._began_s = time.monotonic()

    @property
    def delivered(self) -> int:
        """Return how many records are acknowledged, after `finish`."""
        self._count()
        return self._partitions.total()

    def measure(self, source: InputFile) -> Measured:
        """Return how far the run is; called by the thread that draws."""
        # Acknowledgements are counted between two records: while the input is waited for, they would be out of date.
        text = rate(self._read, self._read_bytes, time.monotonic() - self._began_s) + source.left()
        return Measured(text, source.position(), source.size)

    def send_all(self, records: Iterator[Given], *, typed: bool = False) -> None:
        """Pass records to the library until the input ends or an error occurs.

        Args:
            typed: wait for each acknowledgement: a person should know of an error before typing on.

        Raises:
            ValueError: the input does not fit the format.
        """
        for record in records:
            if self._refused is not None:
                return
            topic = self._topic or record.topic
            if topic is None:
                raise ValueError("a record names no topic")
            self._read_bytes += len(record.key or b"") + len(record.value or b"")
            self._produce(topic, record)
            self._producer.poll(0)
            if len(self._acknowledged) >= _COUNTED_RECORDS:
                self._count()
            self._read += 1
            if typed:
                self._producer.flush(_TYPED_S)
                if self._refused is not None:
                    break
        self._ended = True

    def send_lines(
        self,
        batches: Iterable[list[bytes]],
        lines: Lines,
        common: Common,
        encoded: Callable[[Iterator[Pair]], Iterator[Pair]] = iter,
    ) -> None:
        """Pass lines to the library, by batch, until the input ends or an error occurs.

        Args:
            encoded: encodes values and keys.

        Raises:
            ValueError: a value or key cannot be encoded.
        """
        topic = self._topic
        assert topic is not None, "a line names none"
        headers = list(common.headers) or None
        for batch in batches:
            if self._refused is not None:
                return
            self._read_bytes += sum(map(len, batch))
            is_small = max(map(len, batch)) < self._numbered_bytes
            whole = common.pairs(lines.pairs(batch))
            pairs, failure = (list(whole), None) if encoded is iter else _taken(encoded(whole))
            places = self._places(pairs, common.partition, is_one_key=lines.key_delimiter is None)
            at = 0
            while at < len(pairs):
                if is_small:
                    at += self._pass_small(topic, pairs[at:], places[at:], headers)
                    if at == len(pairs):
                        break
                self._produce(topic, Given(*pairs[at], headers, None, places[at]))
                self._read += 1
                at += 1
                if self._refused is not None:
                    return
            if failure is not None:
                raise failure
            self._producer.poll(0)
            if self._acknowledged:
                self._count()
        self._ended = True

    def _places(self, pairs: list[Pair], partition: int | None, *, is_one_key: bool) -> list[int]:
        """Return the partition of each pair; -1 if the library chooses it."""
        if partition is not None or self._choice is None or not pairs:
            return [-1 if partition is None else partition] * len(pairs)
        choice = self._choice
        choice.begin()
        return [choice[pairs[0][1]]] * len(pairs) if is_one_key else [choice[key] for _, key in pairs]

    def _pass_small(self, topic: str, pairs: list[Pair], places: list[int], headers: Headers | None) -> int:
        """Pass values and keys to the library until it has no place for one; return how many it took."""
        produce, done = self._producer.produce, self._done_unnumbered
        same: Any = headers
        taken = 0
        try:
            for taken, ((value, key), place) in enumerate(zip(pairs, places, strict=True), 1):  # noqa: B007
                produce(topic, value, key, place, done, None, 0, same)
        except (BufferError, OverflowError, KafkaException):
            taken -= 1
        finally:
            # A signal's handler raises as soon as the library's call returns, so that record counts, too.
            self._read += taken
            self._sent.update(places[:taken])
            self._sent_bytes += sum([len(value) for value, _ in pairs[:taken] if value])
        return taken

    def _produce(self, topic: str, record: Given) -> None:
        """Pass a record to the library; wait for a place in its queue."""
        size = len(record.key or b"") + len(record.value or b"")
        numbered = size >= self._numbered_bytes
        if numbered:
            size += sum(len(name) + len(value or b"") for name, value in record.headers or ())
        done = functools.partial(self._done, self._read + 1, size) if numbered else self._done_unnumbered
        partition = -1 if record.partition is None else record.partition
        headers: Any = record.headers or None
        while True:
            try:
                self._producer.produce(
                    topic, record.value, record.key, partition, done, None, record.timestamp or 0, headers
                )
            except BufferError:  # the library's queue is full: wait for acknowledgements
                self._producer.poll(0.1)
                if self._acknowledged:
                    self._count()
                continue
            except OverflowError:
                raise ValueError(f"record {self._read + 1}: the partition or timestamp is out of range") from None
            except KafkaException as error:
                self._refuse(_Refused(error.args[0], topic, partition, self._read + 1, size, local=True))
                return
            self._sent[partition] += 1
            self._sent_bytes += len(record.value or b"")
            return

    def _refuse(self, refused: _Refused) -> None:
        self._refused = self._refused or refused
        self._failed += 1

    def _done_unnumbered(self, error: LibraryError | None, message: Message) -> None:
        if error is None:
            self._acknowledged.append(message)
        else:
            self._done(0, 0, error, message)

    def _done(self, number: int, size: int, error: LibraryError | None, message: Message) -> None:
        if error is None:
            self._acknowledged.append(message)
            return
        partition = int(message.partition() or 0)
        self._lost[partition] += 1
        self._lost_bytes += len(message)
        if not self._gives_up:
            self._refuse(_Refused(error, str(message.topic()), partition, number, size, local=False))

    def _count(self) -> None:
        """Count the acknowledged records, by batch."""
        if self._topic is not None and self._reports_failures_only:
            left = {partition: count - self._lost[partition] for partition, count in self._sent.items()}
            self._partitions = Counter({(self._topic, partition): count for partition, count in left.items() if count})
            self._bytes = self._sent_bytes - self._lost_bytes
            return
        if not self._acknowledged:
            return
        acknowledged, self._acknowledged = self._acknowledged, []
        self._bytes += sum(map(len, acknowledged))
        if self._topic is None:
            self._partitions.update((str(each.topic()), int(each.partition() or 0)) for each in acknowledged)
            return
        for partition, count in Counter(map(Message.partition, acknowledged)).items():
            self._partitions[self._topic, int(partition or 0)] += count

    def _leaders(self) -> list[int]:
        """Return the leader of each partition, as the library now sees them; empty if no broker answers."""
        assert self._topic is not None, "the command chooses the partitions of one topic"
        try:
            found = self._producer.list_topics(self._topic, timeout=_LOOK_TIMEOUT_S).topics.get(self._topic)
        except KafkaException:
            return []
        return [] if found is None else [found.partitions[number].leader for number in sorted(found.partitions)]

    def _give_up(self) -> None:
        """Wait for no acknowledgement any more, and learn which records have none."""
        self._gives_up = True
        if self._reports_failures_only:
            self._producer.purge()
            while len(self._producer):
                self._producer.poll(0.1)

    def finish(self) -> None:
        """Wait for the last acknowledgements; Ctrl-C ends the wait.

        Raises:
            KeyboardInterrupt: of Ctrl-C.
        """
        self._producer.flush()
        self._count()

    def end(self) -> None:
        """Want no more records, and wait for the last acknowledgements."""
        self._ended = True
        self.finish()

    def report(self, *, is_interrupted: bool = False) -> None:
        """Print the counts of produced and failed records.

        Args:
            is_interrupted: Ctrl-C or another signal ended the run.

        Raises:
            Failure: some records were not produced.
        """
        if is_interrupted:
            self._give_up()
        self._count()
        left = ", and ".join(self._left(is_interrupted=is_interrupted))
        if self._refused is not None:
            what, hint = self._why(self._refused, may_ask=not is_interrupted)
            failure = Failure(f"{left}: {what}", hint)
            if not is_interrupted:
                raise failure
            left = failure.format_message()
        if is_interrupted and left:
            click.echo(f"interrupted: {left}", err=True)
        columns = ("TOPIC", "PARTITION", "RECORDS")
        table = Table(columns, [(*where, count) for where, count in sorted(self._partitions.items())])
        data = {"records": self.delivered, "value_bytes": self._bytes, "partitions": table.objects()}
        if self._session.output.is_json:
            self._session.output.show(data)
        else:
            where = ", ".join(
                f"{topic}-{partition}: {count}" for (topic, partition), count in sorted(self._partitions.items())
            )
            plural = "" if self.delivered == 1 else "s"
            click.echo(f"produced {self.delivered} record{plural}{f' ({where})' if where else ''}")

    def _left(self, *, is_interrupted: bool) -> list[str]:
        """Return the failures: records not produced, input not read, and, after a signal, records not acknowledged."""
        left = []
        if self._failed:
            left.append(f"{were(self._failed, of=self._failed + self.delivered)} not produced")
        if not self._ended:
            left.append(f"the input from record {self._read + 1:,} on was not read")
        if is_interrupted and (unknown := self._read - self.delivered - self._failed):
            left.append(
                f"{were(unknown)} sent but not acknowledged, so the log may have {'it' if unknown == 1 else 'them'}"
            )
        return left

    def _why(self, refused: _Refused, *, may_ask: bool) -> tuple[str, str | None]:
        """Return why a record was not produced, and the hint; `may_ask` allows requests to the cluster."""
        error, topic, partition, number, size, local = refused
        if may_ask and self._is_missing(topic):
            # The library waits for a missing topic, and then reports a timeout.
            what = f"topic {topic} does not exist, and the broker did not create it"
            return (
                what,
                f"`barnabas topic create {topic}`; brokers create topics only with auto.create.topics.enable=true",
            )
        if error.code() == LibraryError._UNKNOWN_PARTITION:
            shows = f"`barnabas topic describe {topic}` shows which there are"
            return f"topic {topic} has no partition {partition}", shows
        if error.code() != ErrorCode.MESSAGE_TOO_LARGE:
            which = f"record {number}: " if number else ""
            failure = library_failure(error, f"{which}topic {topic}")
            return failure.message, failure.hint
        if may_ask:
            with contextlib.suppress(KafkaError), self._session.admin() as admin:
                self._limit_bytes = topic_limit(admin, topic)
        return too_large(topic, number, size, self._limit_bytes, local=local)

    def _is_missing(self, topic: str) -> bool:
        try:
            with self._session.admin() as admin:
                found = admin.describe_topics([topic])[topic]
        except KafkaError:
            return False
        return isinstance(found, KafkaError) and found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _taken(pairs: Iterator[Pair]) -> tuple[list[Pair], Exception | None]:
    """Return the pairs up to the first that cannot be encoded, and why it cannot."""
    taken = []
    try:
        for pair in pairs:
            taken.append(pair)
    except Exception as error:  # raised again when the pairs before it are with the library
        return taken, error
    return taken, None
