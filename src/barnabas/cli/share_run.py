"""`consume --share`: records of a share group (KIP-932), each acknowledged by itself.

A record is accepted after it is printed, or as the person says who is asked about each (`--ack ask`). What is not printed, or not
answered, is released: another member need not wait for the end of its lock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import click
import confluent_kafka
from confluent_kafka import KafkaException, Message

from barnabas.cli.consumer_run import forget_stdout
from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import connected, library_failure
from barnabas.cli.progress import on_terminal
from barnabas.cli.record_printer import Printer
from barnabas.cli.session import Session
from barnabas.cli.termination import ends_cleanly
from barnabas.cli.wording import as_typed
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from confluent_kafka import ShareConsumer

ACKS = ("accept", "release", "reject", "ask")
_POLL_SECONDS = 0.5
_PATIENT_POLLS = 20
_COMMIT_SECONDS = 30.0
_LEAVE_SECONDS = 5.0
_QUIT = "quit"
_SHORT = {"a": "accept", "r": "release", "x": "reject", "q": _QUIT}


@contextmanager
def opened(session: Session, extra: tuple[str, ...], group: str) -> Iterator[ShareRun]:
    """Yield a run of a member that always leaves its group; Ctrl-C ends the block without an error.

    Raises:
        Failure: the installed library has no share consumer, or a setting is not valid.
    """
    kind: Any = getattr(confluent_kafka, "ShareConsumer", None)
    if kind is None:
        raise Failure(
            f"confluent-kafka {confluent_kafka.__version__} has no share consumer",
            "pip install --upgrade confluent-kafka",
        )
    consumer = connected(kind, session, extra, {"group.id": group, "share.acknowledgement.mode": "explicit"})
    with suppress(KeyboardInterrupt), ends_cleanly():
        try:
            yield ShareRun(consumer, group)
        finally:
            consumer.close()


class ShareRun:
    """Reads until the count or the person's `quit`."""

    def __init__(self, consumer: ShareConsumer, group: str) -> None:
        self._consumer = consumer
        self._group = group
        self._held: list[Message] = []
        """Records of this member without an acknowledgement."""
        self._records = 0
        self._empty_polls = 0

    def read(self, topics: Sequence[str], show: Printer, count: int | None, ack: str) -> None:
        """Print and acknowledge records.

        Args:
            ack: one of `ACKS`.

        Raises:
            Failure: the broker rejects the request.
        """
        stream = sys.stdout.buffer
        self._consumer.subscribe(list(topics))
        try:
            while count is None or self._records < count:
                self._held = self._next()
                self._held, beyond = self._held[: self._room(count)], self._held
                beyond = beyond[len(self._held) :]
                self._answer(beyond, "release")
                go_on = self._ask(stream, show) if ack == "ask" else self._print(stream, show, ack)
                if not go_on:
                    break
        except BrokenPipeError:
            forget_stdout()
        finally:
            self._release()

    def _room(self, count: int | None) -> int | None:
        return None if count is None else count - self._records

    def _next(self) -> list[Message]:
        found = []
        try:
            messages = list(self._consumer.poll(_POLL_SECONDS) or ())
        except KafkaException as error:
            raise library_failure(error.args[0], f"group {self._group}") from None
        for message in messages:
            if (wrong := message.error()) is None:
                found.append(message)
            elif not wrong.retriable() or wrong.fatal():
                raise library_failure(wrong, f"topic {message.topic()}" if message.topic() else "cannot consume")
        self._note_wait(is_empty=not found)
        return found

    def _note_wait(self, *, is_empty: bool) -> None:
        self._empty_polls += is_empty
        if self._empty_polls == _PATIENT_POLLS and not self._records and on_terminal():
            group = as_typed(printable(self._group))
            click.echo(
                f"no record for share group {printable(self._group)} yet: a new one begins at the end of the topic"
                f" (`barnabas config alter group {group} --set share.auto.offset.reset=earliest` before it begins)",
                err=True,
            )

    def _print(self, stream: BinaryIO, show: Printer, ack: str) -> bool:
        if not self._held:
            return True
        stream.write(show(self._held))
        stream.flush()
        printed, self._held = self._held, []
        self._records += len(printed)
        self._answer(printed, ack)
        return True

    def _ask(self, stream: BinaryIO, show: Printer) -> bool:
        """Print each record and ask about it; return whether to go on."""
        while self._held:
            message = self._held[0]
            stream.write(show([message]))
            stream.flush()
            answer = _asked(message)
            if answer == _QUIT:
                return False
            del self._held[0]
            self._records += 1
            self._answer([message], answer)
        return True

    def _answer(self, messages: Sequence[Message], ack: str, timeout_s: float = _COMMIT_SECONDS) -> None:
        """Acknowledge records, and say which the broker no longer takes as this member's."""
        if not messages:
            return
        kind = confluent_kafka.AcknowledgeType[ack.upper()]
        for message in messages:
            self._consumer.acknowledge(message, kind)
        try:
            outcomes = self._consumer.commit_sync(timeout_s)
        except KafkaException as error:
            raise library_failure(error.args[0], f"group {self._group}") from None
        for where, refused in outcomes.items():
            if refused is not None:
                why = library_failure(refused.args[0], f"{where.topic}-{where.partition}").format_message()
                click.echo(f"warning: not every record has its acknowledgement: {why}", err=True)

    def _release(self) -> None:
        held, self._held = self._held, []
        with suppress(Failure, KeyboardInterrupt, SystemExit):
            self._answer(held, "release", _LEAVE_SECONDS)


def _asked(message: Message) -> str:
    """Return what the person says of a record; the end of the input quits."""
    attempt = message.delivery_count()
    where = f"{printable(str(message.topic()))}-{message.partition()} at {message.offset()}, delivery {attempt}"
    ask: Callable[[str], None] = lambda text: click.echo(text, err=True, nl=False)  # noqa: E731
    while True:
        ask(f"{where}: [a]ccept, [r]elease, reject [x], [q]uit? ")
        line = sys.stdin.readline()
        if not line:
            ask("\n")
            return _QUIT
        word = line.strip().lower()
        answer = _SHORT.get(word, word)
        if answer in (*_SHORT.values(),):
            return answer
