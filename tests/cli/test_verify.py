"""`barnabas verify` as a command: verdicts on histories, exit codes, and a run on a broker of its own with a kill."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.verify import verify
from barnabas.client.admin import Admin
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.verify.history import read_history, write_history
from barnabas.verify.run import Progress, Run, Settings
from barnabas.verify.verdict import Verdict, check
from tests.verify import model
from tests.verify.stories import history


def run(*arguments: str) -> Result:
    return CliRunner().invoke(verify, arguments, prog_name="barnabas verify")


def test_a_clean_history(tmp_path: Path) -> None:
    write_history(tmp_path / "clean", model.run(1, steps=300))
    result = run("--check", str(tmp_path / "clean"))
    assert result.exit_code == 0
    assert result.output.endswith("\n\nvalid: no anomaly\n")


def test_a_history_with_an_anomaly(tmp_path: Path) -> None:
    path = tmp_path / "bad"
    write_history(path, history("p0 fail txn s0:1", "final r0:1@0"))
    result = run("--check", str(path))
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert "aborted-read  1" in lines
    assert "aborted-read in key 0: 1 was read, and the txn that sent it was aborted" in lines
    assert lines[-1] == f"invalid: 1 anomaly; `barnabas verify --check {path}` checks it again"
    found = json.loads(run("--check", str(path), "--output", "json").output)
    assert found["valid"] is False
    assert found["anomalies"] == {"aborted-read": 1}
    assert found["examples"][0]["name"] == "aborted-read"


def test_one_verdict_ends_the_report_after_what_kafka_permits(tmp_path: Path) -> None:
    path = tmp_path / "permitted"
    write_history(path, history("p0 ok txn s0:1@0 s0:3@2", "p1 ok send s0:2@1", "final r0:1@0,2@1,3@2"))
    result = run("--check", str(path))
    lines = result.output.splitlines()
    assert result.exit_code == 0
    assert lines[-5:] == [
        "PERMITTED-BY-KAFKA  COUNT  WHY",
        "int-send-skip       1      records of transactions may interleave in the log",
        "G0                  1      records of transactions may interleave in the log",
        "",
        "valid: no anomaly",
    ]
    assert len([line for line in lines if re.search("valid|anomal", line, re.IGNORECASE)]) == 1


def test_a_file_that_is_not_a_history_is_one_line_without_python(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content, words in (
        (b"\xff\xfe\n", "the file is not a history, but binary"),
        (b"", "the history is empty"),
        (b'{"barnabas-verify": 99}\n', "another version of barnabas wrote the history"),
        (b"[]\n", "line 1 is not a valid line of a history"),
    ):
        path.write_bytes(content)
        assert run("--check", str(path)).stderr == f"error: {path}: {words}\n"


def test_a_person_is_told_beforehand_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cli.verify.on_terminal", lambda: True)
    with barnabas.Broker() as broker:
        result = run("-b", broker.bootstrap_servers, "--time", "3", "--plain", "1", "--txn", "0", "--transform", "0")
    assert result.stderr.splitlines()[0] == "3 s of work, then about 10 s to read everything back"
    assert result.stdout.splitlines()[-1] == "valid: no anomaly"


def test_the_phases_of_a_run() -> None:
    with barnabas.Broker() as broker:
        made = Run(Settings(broker.bootstrap_servers, seconds=600, plain=1, txn=0, transform=0))
        assert made.progress() == Progress("creating topics", 0.0, 0, 0, 0, 0)
        running = threading.Thread(target=made)
        running.start()
        while made.progress().ok == 0:
            made.stopping.wait(0.01)
        assert made.progress().phase == "working"
        made.stopping.set()
        running.join()
    assert made.progress().phase == "checking"


class _CtrlC(threading.Event):
    """Interrupts the main thread's wait when an operation has succeeded."""

    made: Run

    def wait(self, timeout: float | None = None) -> bool:
        if threading.current_thread() is threading.main_thread():
            while self.made.progress().ok == 0:
                super().wait(0.01)
            raise KeyboardInterrupt
        return super().wait(timeout)


def test_an_interrupted_run_reads_everything_back_and_knows_when_it_was_interrupted() -> None:
    stopping = _CtrlC()
    with barnabas.Broker() as broker:
        settings = Settings(broker.bootstrap_servers, seconds=600, plain=1, txn=0, transform=0)
        made = stopping.made = Run(settings, stopping=stopping)
        assert made().valid
    assert made.interrupted_s is not None
    assert 0 < made.interrupted_s < 600


def test_the_verdict_says_that_the_run_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(made: Run) -> Verdict:
        made.interrupted_s = 4.74
        return check(model.run(1, steps=300) if clean else history("p0 fail txn s0:1", "final r0:1@0"))

    monkeypatch.setattr(Run, "__call__", interrupted)
    clean = True
    with barnabas.Broker() as broker:
        address = broker.bootstrap_servers
        result = run("-b", address)
        assert (result.exit_code, result.output.splitlines()[-1]) == (130, "valid: no anomaly, interrupted after 4.7 s")
        result = run("-b", address, "-o", "json")
        assert (result.exit_code, json.loads(result.output)["interrupted_after_seconds"]) == (130, 4.7)
        clean = False
        result = run("-b", address)
    assert (result.exit_code, result.output.splitlines()[-1]) == (1, "invalid: 1 anomaly, interrupted after 4.7 s")


def test_a_cluster_that_does_not_answer_is_waited_for_as_long_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Run] = []
    monkeypatch.setattr(Run, "__call__", called.append)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        result = run("-b", address, "--timeout-ms", "50")
    assert (result.exit_code, called) == (1, [])
    assert f"{address} takes connections, but answers nothing" in result.stderr


def test_a_run_waits_as_long_as_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []

    class Waiting:
        def __init__(self, bootstrap: str, *, timeout_ms: int, security: None) -> None:
            waits.append(timeout_ms)
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no answer")

    def version(bootstrap: str, timeout_ms: int, security: None) -> int:
        waits.append(timeout_ms)
        return 2

    monkeypatch.setattr("barnabas.verify.run.transaction_version", version)
    monkeypatch.setattr("barnabas.verify.run.Admin", Waiting)
    with barnabas.Broker() as broker:
        result = run("-b", broker.bootstrap_servers, "--timeout-ms", "12345")
    assert (result.exit_code, waits) == (1, [12345, 12345])


def test_a_history_without_anything_acknowledged_proves_nothing(tmp_path: Path) -> None:
    write_history(tmp_path / "empty", history("p0 fail txn s0:1"))
    result = run("--check", str(tmp_path / "empty"))
    assert result.exit_code == 1
    assert "so it proves nothing" in result.stderr


def test_a_history_that_was_cut_off_has_a_warning(tmp_path: Path) -> None:
    write_history(tmp_path / "cut", history("p0 ok send s0:1@0"))
    result = run("--check", str(tmp_path / "cut"))
    assert result.exit_code == 1
    assert "the run did not end" in result.stderr
    assert "unseen" in result.stdout


def test_a_run_that_is_terminated_takes_its_broker_with_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "barnabas.main", "verify", "--start", "--time", "600", "--data-dir", str(tmp_path)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = tmp_path / "broker.log"
    deadline = time.monotonic() + 300
    while not (log.exists() and "ready on" in log.read_text()):
        assert running.poll() is None
        assert time.monotonic() < deadline
    running.terminate()
    assert running.wait(300) == 128 + signal.SIGTERM
    with barnabas.Broker(data_dir=tmp_path / "data"):
        """The directory would be in use if the other broker were still there."""


def test_an_address_that_is_taken_is_not_killed_for(tmp_path: Path) -> None:
    with barnabas.Broker() as broker:
        result = run("-b", broker.bootstrap_servers, "--broker-command", "false", "--data-dir", str(tmp_path))
    assert result.exit_code == 1
    assert "answers at" in result.stderr
    assert not (tmp_path / "broker.log").exists()


def test_a_history_that_cannot_be_written_is_told_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "run.jsonl"
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        result = run("-b", broker.bootstrap_servers, "--history", str(path), "--time", "1")
        assert admin.list_topics() == []
    assert result.exit_code == 1
    assert result.stderr == f"error: cannot write {path}: No such file or directory\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--kill-every", "5"], 2, "--kill-every needs --start or --broker-command."),
        (["--start", "--broker-command", "x"], 2, "--start and --broker-command exclude each other."),
        (["--check", __file__], 1, "line 1 is not a valid line of a history"),
        (["-b", "127.0.0.1:1"], 1, "error: "),
    ],
)
def test_what_cannot_be_done(arguments: list[str], code: int, message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    assert message in result.output


def test_a_command_that_ends_is_told(tmp_path: Path) -> None:
    result = run("-b", "127.0.0.1:1", "--broker-command", "false", "--data-dir", str(tmp_path))
    assert result.exit_code == 1
    assert "error: the broker ended with code 1" in result.output


@pytest.mark.conform
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_a_run_with_kills(protocol: str, tmp_path: Path) -> None:
    """Whatever happens in a run is right; a run in which a busy machine lets too little happen is made again, longer."""
    for seconds in (6, 30, 120):
        path = tmp_path / f"history-{seconds}"
        folder = str(tmp_path / f"broker-{seconds}")
        arguments = ["--start", "--data-dir", folder, "--time", str(seconds), "--kill-every", "2", "--seed", "1"]
        result = run(*arguments, "--protocol", protocol, "--history", str(path), "--output", "json")
        if result.exit_code == 1 and re.search(r"error: no (send|txn) succeeded", result.output):
            continue
        assert result.exit_code == 0, result.output
        found = json.loads(result.output)
        assert found["valid"]
        assert read_history(path).about["protocol"] == protocol
        if found["statistics"]["kills"] > 0 and found["statistics"]["operations"]["txn"].get("ok", 0) > 20:
            return
    raise AssertionError(result.output)
