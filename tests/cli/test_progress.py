"""Progress: on a terminal only, drawn by a thread, gone at the end."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from rich.console import Console

import barnabas
from barnabas.cli.consumer_run import opened
from barnabas.cli.offset_grammar import Span
from barnabas.cli.output import TableOutput
from barnabas.cli.progress import InputFile, Measured, on_terminal, output_is_a_file, progress_bar, rate, shown
from barnabas.cli.record_printer import printer
from barnabas.cli.session import Session
from barnabas.client.admin import LATEST, Admin, TopicPartition, result
from barnabas.client.topics import NewTopic
from tests.cluster.waiting import wait_for


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9?]*[a-zA-Z]", "", console.file.getvalue())


def test_a_bar_shows_what_is_measured_when_it_is_drawn() -> None:
    now = [Measured("1 record  0.0 MB/s", 1, 4)]
    console = terminal()
    bar = progress_bar(lambda: now[0], console)
    now[0] = Measured("3 records  0.1 MB/s", 3, 4)
    console.print(bar.get_renderable())
    assert "3 records  0.1 MB/s" in text(console)
    assert "75%" in text(console)


def test_without_a_total_there_is_no_bar() -> None:
    console = terminal()
    console.print(progress_bar(lambda: Measured("3 records  0.1 MB/s"), console).get_renderable())
    assert text(console).strip() == "3 records  0.1 MB/s"


def test_the_line_appears_after_a_while_and_vanishes() -> None:
    drawn = threading.Event()

    def measure() -> Measured:
        drawn.set()
        return Measured("3 records")

    console = terminal()
    with shown(measure, console=console, after_s=0):
        assert drawn.wait(60)
    assert "3 records" in text(console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().endswith("\x1b[2K"), "the line is erased"


@pytest.mark.parametrize("wanted", [True, False])
def test_short_work_and_work_without_a_terminal_draw_nothing(wanted: bool) -> None:
    console = terminal()
    with shown(lambda: Measured("never"), wanted=wanted, console=console, after_s=3600):
        pass
    assert text(console) == ""
    with shown(lambda: Measured("never"), after_s=0):
        """Standard error of a test is not a terminal."""


def test_where_progress_may_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    with pseudo_terminal() as (_, stream):
        monkeypatch.setenv("TERM", "xterm")
        assert on_terminal(stream)
        monkeypatch.setenv("TERM", "dumb")
        assert not on_terminal(stream)
    assert not on_terminal(io.StringIO())


def test_output_into_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert output_is_a_file()
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert not output_is_a_file()
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert not output_is_a_file()


def test_what_is_left_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"x" * 3_000_000)
    with path.open("rb", buffering=0) as file:
        source = InputFile(file.fileno())
        file.read(1_000_000)
        assert (source.position(), source.size, source.left()) == (1_000_000, 3_000_000, "  2.0 MB left")
    nothing = InputFile(None)
    assert (nothing.position(), nothing.size, nothing.left()) == (0, None, "")


def test_rates() -> None:
    assert rate(1, 0, 0.0) == "1 record  0.0 MB/s"
    assert rate(568_089, 24_000_000, 2.0) == "568,089 records  12.0 MB/s"


@contextlib.contextmanager
def pseudo_terminal() -> Iterator[tuple[int, io.TextIOWrapper]]:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        try:
            yield ours, stream
        finally:
            os.close(ours)


def read_until(descriptor: int, pattern: str) -> str:
    seen = ""
    while not re.search(pattern, seen):
        try:
            seen += os.read(descriptor, 4096).decode()
        except OSError:  # the process has ended
            raise AssertionError(seen) from None
    return seen


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 1, 1)])
        yield running


def start(broker: barnabas.Broker, *arguments: str, **streams: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "barnabas", *arguments, "-b", broker.bootstrap_servers]

    # Whoever runs the tests in the background of a shell, or under nohup, has them ignore a signal, and a child inherits that.
    def heeded() -> None:
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(command, env=os.environ | {"TERM": "xterm"}, preexec_fn=heeded, **streams)  # type: ignore[call-overload,no-any-return]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_produce_from_a_pipe_shows_progress_on_a_terminal(broker: barnabas.Broker) -> None:
    with pseudo_terminal() as (ours, stream):
        running = start(broker, "produce", "orders", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream)
        assert running.stdin is not None
        running.stdin.write(b"a\nb\n")
        running.stdin.flush()
        read_until(ours, r"2 records  0\.0 MB/s")
        output, _ = running.communicate()
    assert output == b"produced 2 records (orders-0: 2)\n"


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_produce_on_a_terminal_says_how_to_end(broker: barnabas.Broker) -> None:
    with pseudo_terminal() as (ours, stream):
        running = start(broker, "produce", "orders", stdin=stream, stdout=subprocess.PIPE, stderr=stream)
        read_until(ours, r"type records, one a line; Ctrl-D ends\r\n")
        os.write(ours, b"a record\n\x04")
        output, _ = running.communicate()
    assert output == b"produced 1 record (orders-0: 1)\n"


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_says_what_was_not_read(broker: barnabas.Broker, number: signal.Signals, code: int) -> None:
    running = start(broker, "produce", "orders", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdin is not None
    before = end_of(broker)
    running.stdin.write(b"a\nb\nunfinished")
    running.stdin.flush()
    wait_for("both records", lambda: end_of(broker) >= before + 2)
    running.send_signal(number)
    output, errors = running.communicate()
    assert (running.returncode, output) == (code, b"produced 2 records (orders-0: 2)\n")
    assert errors == b"interrupted: the input from record 3 on was not read\n"


def end_of(broker: barnabas.Broker) -> int:
    where = TopicPartition("orders", 0)
    with Admin(broker.bootstrap_servers) as admin:
        return result(admin.list_offsets({where: LATEST})[where]).offset


def fill(broker: barnabas.Broker, value: bytes) -> None:
    """Produce four records into the topic `counted`, and no others."""
    broker.reset()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(4):
        producer.produce("counted", value)
    producer.flush()


def test_how_far_a_consumer_is(broker: barnabas.Broker, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    fill(broker, b"a record")
    session = Session(broker.bootstrap_servers, {}, None, TableOutput())
    settings = {"group.id": "unused", "enable.auto.commit": False, "enable.partition.eof": True}
    with opened(session, (), settings) as run:
        measure = run.progress()
        run.assign({TopicPartition("counted", 0): Span(1, None, 4)})
        assert (measure().done, measure().total) == (0, 3)
        run.read(printer("%v\\n"), None, True, commit=False)
        assert (measure().done, measure().total) == (3, 3)
        assert measure().text.startswith("3 records  ")
    assert capfdbinary.readouterr().out == b"a record\n" * 3


def test_how_fast_a_consumer_is_into_dev_null(broker: barnabas.Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The position in such a file says nothing."""
    fill(broker, b"x" * 900_000)
    session = Session(broker.bootstrap_servers, {}, None, TableOutput())
    settings = {"group.id": "unused", "enable.auto.commit": False, "enable.partition.eof": True}
    with opened(session, (), settings) as run, Path(os.devnull).open("w") as nowhere:
        monkeypatch.setattr(sys, "stdout", nowhere)
        measure = run.progress()
        run.assign({TopicPartition("counted", 0): Span(0, None, 4)})
        run.read(printer("%v\n"), None, True, commit=False)
        assert re.fullmatch(r"4 records  (?!0\.0 MB/s)[\d,.]+ MB/s", measure().text)
