"""`consume --share` with a library of its own: what becomes of each record."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import AcknowledgeType, KafkaError, KafkaException, Message, TopicPartition

from barnabas.cli.record_printer import printer
from barnabas.cli.share_run import ShareRun
from barnabas.main import command_group
from tests.cli.test_record_format import RECORD
from tests.cli.test_record_printer import message

LETTER = {AcknowledgeType.ACCEPT: "a", AcknowledgeType.RELEASE: "r", AcknowledgeType.REJECT: "x"}


def record(offset: int) -> Message:
    return message(RECORD._replace(offset=offset, value=b"%d" % offset))


class _Sharing:
    """A library that delivers batches, and then Ctrl-C."""

    def __init__(self, *batches: Sequence[Message]) -> None:
        self._batches = list(batches)
        self.acknowledged: dict[int | None, str] = {}
        self._pending: dict[int | None, str] = {}
        self.refused: KafkaException | None = None

    def subscribe(self, topics: list[str]) -> None:
        assert topics == ["t"]

    def poll(self, timeout: float) -> Sequence[Message]:
        assert not self._pending, "every acknowledgement was committed"
        if not self._batches:
            raise KeyboardInterrupt
        return self._batches.pop(0)

    def acknowledge(self, message: Message, kind: AcknowledgeType) -> None:
        self._pending[message.offset()] = LETTER[kind]

    def commit_sync(self, timeout: float) -> dict[TopicPartition, KafkaException | None]:
        self.acknowledged |= self._pending
        self._pending.clear()
        return {TopicPartition("t", 3): self.refused}


def read(
    monkeypatch: pytest.MonkeyPatch, consumer: _Sharing, count: int | None = None, ack: str = "accept", typed: str = ""
) -> bytes:
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed))
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    run: Any = ShareRun(consumer, "shop")  # type: ignore[arg-type]
    with contextlib.suppress(KeyboardInterrupt):
        run.read(["t"], printer("%v\\n"), count, ack)
    return printed.getvalue()


def test_what_is_printed_is_accepted_and_what_is_beyond_the_count_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = _Sharing([record(1)], [], [record(2), record(3), record(4)])
    assert read(monkeypatch, consumer, 3) == b"1\n2\n3\n"
    assert consumer.acknowledged == {1: "a", 2: "a", 3: "a", 4: "r"}


@pytest.mark.parametrize(("ack", "letter"), [("release", "r"), ("reject", "x")])
def test_another_end_for_each(monkeypatch: pytest.MonkeyPatch, ack: str, letter: str) -> None:
    consumer = _Sharing([record(1), record(2)])
    assert read(monkeypatch, consumer, ack=ack) == b"1\n2\n"
    assert consumer.acknowledged == {1: letter, 2: letter}


def test_a_person_says_it_of_each(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    consumer = _Sharing([record(1), record(2), record(3)], [record(4), record(5)])
    assert read(monkeypatch, consumer, ack="ask", typed="a\nwhat\nx\nrelease\nQ\n") == b"1\n2\n3\n4\n"
    assert consumer.acknowledged == {1: "a", 2: "x", 3: "r", 4: "r", 5: "r"}, "4 and 5 are left: they are released"
    assert capsys.readouterr().err.count("t-3 at 2, delivery ") == 2, "it asks again after a word that is no answer"


def test_the_end_of_the_input_releases_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = _Sharing([record(1), record(2)])
    read(monkeypatch, consumer, ack="ask", typed="a\n")
    assert consumer.acknowledged == {1: "a", 2: "r"}


def test_an_acknowledgement_that_comes_too_late_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    consumer = _Sharing([record(1)])
    consumer.refused = KafkaException(KafkaError(121))
    read(monkeypatch, consumer, 1)
    assert capsys.readouterr().err.startswith("warning: not every record has its acknowledgement: t-3: ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--share", "g", "-o", "end"], "leave out -o"),
        (["--share", "g", "-g", "g"], "leave out -g"),
        (["--share", "g", "--isolation-level", "read_committed"], "leave out --isolation-level"),
        (["--share", ""], "the group name is empty: --share GROUP"),
        (["--ack", "ask"], "--ack needs --share"),
    ],
)
def test_options_that_do_not_fit(options: list[str], words: str) -> None:
    result = CliRunner().invoke(command_group(), ["consume", "t", "-b", "127.0.0.1:1", *options], prog_name="barnabas")
    assert (result.exit_code, words in result.stderr) == (2, True), result.stderr
