"""`barnabas consume` in a group: how it ends, and what it says while it waits."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as LibraryPartition

import barnabas
from barnabas.cli.consume import _note_committed
from barnabas.cli.consumer_run import ConsumerRun
from barnabas.cli.failure import Failure
from barnabas.client.admin import Admin, GroupDescription, TopicPartition
from tests.cli.made_up_cluster import MadeUpAdmin


def test_sigterm_commits_what_was_printed_and_leaves_the_group() -> None:
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        broker.create_topic("orders")
        command = [sys.executable, "-m", "barnabas", "produce", "orders", "-b", broker.bootstrap_servers]
        subprocess.run(command, input=b"one\ntwo\n", check=True, capture_output=True)
        command = [sys.executable, "-m", "barnabas", "consume", "orders", "-b", broker.bootstrap_servers, "-g", "shop"]
        # Unbuffered, a line can be seen before its offset is stored: then it would be printed again, which is permitted.
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            assert [running.stdout.readline() for _ in range(2)] == [b"one\n", b"two\n"]
            running.terminate()
            assert running.wait(60) == 128 + signal.SIGTERM
            assert running.stderr.read() == b""
        group = admin.describe_groups(["shop"])["shop"]
        assert isinstance(group, GroupDescription)
        assert (group.state, group.members) == ("Empty", [])
        assert admin.list_group_offsets("shop")[TopicPartition("orders", 0)].offset == 2


class _Waiting:
    """A consumer whose group assigns `partitions` at the poll of this number; Ctrl-C comes at the one after the last."""

    def __init__(self, partitions: list[LibraryPartition], at_poll: int, polls: int) -> None:
        self._partitions = partitions
        self._at_poll = at_poll
        self._polls = polls
        self._count = 0

    def subscribe(self, topics: list[str], on_assign: Callable[[Any, list[LibraryPartition]], None]) -> None:
        self._on_assign = on_assign

    def poll(self, seconds: float) -> None:
        self._count += 1
        if self._count > self._polls:
            raise KeyboardInterrupt
        if self._count == self._at_poll:
            self._on_assign(self, self._partitions)


def _said(monkeypatch: pytest.MonkeyPatch, consumer: _Waiting, *, on_terminal: bool = True) -> list[str]:
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr("barnabas.cli.consumer_run.on_terminal", lambda: on_terminal)
    run = ConsumerRun(consumer)  # type: ignore[arg-type]
    run.subscribe(["orders"], "shop")
    with pytest.raises(KeyboardInterrupt):
        run.read(lambda record: b"", None, False, commit=True)
    return said.getvalue().splitlines()


class _Deleting(_Waiting):
    """Its topic `gone` is deleted; a poll takes a second."""

    def list_topics(self, topic: str, timeout: float) -> Any:
        error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART) if topic == "gone" else None
        return SimpleNamespace(topics={topic: SimpleNamespace(error=error)})

    def now(self) -> float:
        return self._count


def _read_deleted(monkeypatch: pytest.MonkeyPatch, *topics: str) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    consumer = _Deleting(ALL, at_poll=1, polls=9)
    run = ConsumerRun(consumer, consumer.now)  # type: ignore[arg-type]
    run.subscribe(list(topics), "shop")
    run.read(lambda record: b"", None, False, commit=True)


def test_a_consumer_whose_topic_was_deleted_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failure, match=r"^topic gone was deleted$"):
        _read_deleted(monkeypatch, "gone")


def test_a_consumer_of_another_topic_too_says_so_once_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        _read_deleted(monkeypatch, "gone", "orders")
    assert capsys.readouterr().err == "topic gone was deleted\n"


ALL = [LibraryPartition("orders", 0)]


def test_a_person_is_told_once_what_a_consumer_without_partitions_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _said(monkeypatch, _Waiting(ALL, at_poll=20, polls=25)) == [
        "waiting for group shop to assign partitions (`barnabas group describe shop --members` shows who is in it)"
    ]


def test_nothing_is_said_of_the_3_s_that_every_new_group_waits_for_members(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _said(monkeypatch, _Waiting(ALL, at_poll=9, polls=25)) == []


def test_a_group_that_assigns_at_once_and_a_script_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _said(monkeypatch, _Waiting(ALL, at_poll=1, polls=25)) == []
    assert _said(monkeypatch, _Waiting(ALL, at_poll=20, polls=25), on_terminal=False) == []


def test_a_consumer_that_gets_no_partition_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _said(monkeypatch, _Waiting([], at_poll=2, polls=9)) == [
        "group shop has no partition for this consumer: its other members read them all"
    ]


def test_a_person_is_told_that_a_group_goes_on_where_it_committed(capsys: pytest.CaptureFixture[str]) -> None:
    admin: Any = MadeUpAdmin()
    _note_committed(admin, "quiet", ["orders"])
    assert capsys.readouterr().err == (
        "group quiet goes on where it committed, in 4 partitions: -o counts only for partitions without a commit"
        " (`barnabas group reset-offsets quiet --all-topics --to-earliest --execute` begins again)\n"
    )
    _note_committed(admin, "quiet", ["payments"])
    _note_committed(admin, "new", ["orders"])
    assert capsys.readouterr().err == ""
