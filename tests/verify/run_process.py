"""A run of the checker's workload in a process of its own, which may get stuck without its caller.

    python -m tests.verify.run_process SETTINGS HISTORY STACKS COMMAND-CONFIG

A call of a client library sometimes never returns: librdkafka's `Consumer.close` was seen to wait for ever while it held the
interpreter's lock, so that no thread of the process went on, and no timeout in it came. So the process says several times a second
which phase it is in. When that ends, or the run takes too long, the caller has the stacks of all threads written (faulthandler needs
no lock for that), and kills it. What it did until then is in the history: an operation without an end counts as unknown. The caller
adds one of kind `stuck` to each, then the last reads, which a process that got stuck did not get to, and has a verdict after all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from barnabas.client.properties import read_properties
from barnabas.security.client_security import client_security
from barnabas.verify.consumer import Layout
from barnabas.verify.final_reads import read_committed_offsets, read_everything
from barnabas.verify.history import History, Op, Outcome, read_history, write_history
from barnabas.verify.recorder import Recorder
from barnabas.verify.run import Run, Settings
from barnabas.verify.verdict import check

SAYS_SECONDS = 0.2
SILENT_SECONDS = 90.0
"""A process that does not say a word for so long is stuck; one core for many processes makes them slow, not silent."""
STACKS_SECONDS = 2.0


class RunFailed(AssertionError):
    """The process ended without a verdict; the message has what it printed."""


class RunProcess:
    """A run in progress.

    Args:
        settings: of the run; it kills no broker by itself, and has no security.
        history: the file of the history.
        command_config: a client's properties file with TLS and a login; None for plain text.

    Attributes:
        phase: as in `Run`; `stuck` after it was killed.
        stack: of all threads of a process that was stuck; empty otherwise.
    """

    def __init__(self, settings: Settings, history: Path, *mode: str, command_config: Path | None = None) -> None:
        self.settings, self.history = settings, history
        self._command_config = command_config
        self.phase, self.stack = "starting", ""
        self.verdict: dict[str, Any] | None = None
        self._stacks = history.with_suffix(".stacks")
        self._errors = history.with_suffix(".errors")
        self._said: queue.Queue[str] = queue.Queue()
        self.heard_at = time.monotonic()
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [
                    sys.executable, "-m", __spec__.name if __name__ != "__main__" else "tests.verify.run_process",
                    json.dumps(dataclasses.asdict(settings)), str(history), str(self._stacks),
                    str(command_config or ""), *mode,
                ],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )  # fmt: skip
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(line)

    def look(self) -> bool:
        """Take in what the process has said; return whether it still works, killing it if it is stuck.

        Raises:
            RunFailed: it ended by itself without a verdict.
        """
        ended = self._process.poll() is not None
        if ended:
            self._process.wait()
        with contextlib.suppress(queue.Empty):
            while True:
                said = json.loads(self._said.get(timeout=0.5 if ended and self.verdict is None else 0))
                self.heard_at = time.monotonic()
                self.phase = said.get("phase", self.phase)
                self.verdict = said.get("verdict", self.verdict)
        if ended and self.verdict is None and not self.stack:
            raise RunFailed(f"the run ended in the phase {self.phase!r}: {self._errors.read_text()[-2000:]}")
        if not ended and time.monotonic() - self.heard_at > SILENT_SECONDS:
            self.kill_stuck()
        return not ended and not self.stack

    def kill_stuck(self) -> None:
        """Keep the stacks of its threads, and end it."""
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(STACKS_SECONDS)
        self.stack = self._stacks.read_text() or "no stack was written"
        self.phase = "stuck"
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def wait(self, seconds: float) -> dict[str, Any]:
        """Wait for the verdict, as `Verdict.as_json` has it; a run that takes longer is stuck, and the verdict is on what it did."""
        deadline = time.monotonic() + seconds
        while self.look():
            if time.monotonic() > deadline:
                self.kill_stuck()
            time.sleep(SAYS_SECONDS)
        if self.stack:
            return self._finish(seconds)
        assert self.verdict is not None
        return self.verdict

    def _finish(self, seconds: float) -> dict[str, Any]:
        rest = RunProcess(self.settings, self.history, "finish", command_config=self._command_config)
        try:
            while rest.look():
                if time.monotonic() > rest.heard_at + seconds:
                    rest.kill_stuck()
            if rest.stack:
                raise RunFailed(f"the run was stuck, and so are the last reads:\n{self.stack}\n{rest.stack}")
        finally:
            rest.kill()
        assert rest.verdict is not None
        return rest.verdict


def finish(history: Path, settings: Settings) -> History:
    """Return the history of a run that got stuck with an end: what was open is `stuck`, and everything is read."""
    begun = read_history(history)
    name = begun.about["topics"][0].removesuffix("-shared")
    layout = Layout(begun.about["topics"], begun.about["partitions"])
    keys = [layout.keys(topic) for topic in layout.topics]
    last = Recorder(begun.about)
    for process in still_open(begun):
        last.record(process, Outcome.INFO, "stuck", error="a call of the client library does not return")
    patience = settings.transaction_timeout_ms / 1000 + 30
    every = tuple(key for each in keys for key in each)
    read_everything(settings.bootstrap, layout, every, last, patience, settings.security)
    if settings.transform:
        read_committed_offsets(settings.bootstrap, layout, f"{name}-group", keys[1], last, patience, settings.security)
    return joined(begun, last.history())


def still_open(history: History) -> list[int]:
    """Return the processes that are within an operation at the end."""
    open_ones: dict[int, Op] = {}
    for op in history:
        if op.outcome is Outcome.INVOKE:
            open_ones[op.process] = op
        else:
            open_ones.pop(op.process, None)
    return sorted(open_ones)


def joined(first: History, second: History) -> History:
    """Return both as one; the processes of the second that read at the end are others than those of the first."""
    count = max((op.process for op in first), default=-1) + 1
    end_ns = max((op.time_ns for op in first), default=0)
    moved = tuple(
        dataclasses.replace(
            op,
            index=op.index + len(first),
            time_ns=op.time_ns + end_ns,
            process=op.process + count if op.final else op.process,
        )
        for op in second
    )
    return History(first.ops + moved, first.about)


def main() -> None:
    given, history, stacks, command_config, *mode = sys.argv[1:]
    settings = Settings(**json.loads(given))
    if command_config:
        settings = dataclasses.replace(settings, security=client_security(read_properties(command_config)))
    faulthandler.register(signal.SIGUSR1, file=open(stacks, "w"), all_threads=True)  # noqa: SIM115
    run = Run(settings, Path(history))

    one_line = threading.Lock()

    def say(**what: Any) -> None:
        with one_line:
            print(json.dumps(what), flush=True)

    def report() -> None:
        while True:
            say(phase="last reads" if mode else run.phase)
            time.sleep(SAYS_SECONDS)

    threading.Thread(target=report, daemon=True).start()
    if mode:
        whole = finish(Path(history), settings)
        write_history(Path(history), whole)
        verdict = check(whole)
    else:
        verdict = run()
    say(verdict=verdict.as_json())
    # A client that is stuck would not let the interpreter end.
    os._exit(0)


if __name__ == "__main__":
    main()
