"""Screens of every table: what a terminal of 60, 80 and 120 columns shows, compared with the files in `screens/`.

    python -m tests.cli.screens              run every command in tmux and compare
    python -m tests.cli.screens --write      write the files, from tmux
    python -m tests.cli.screens --show NAME  run one command against the made-up cluster, on this terminal

`test_screens` compares the same files without tmux.
"""

from __future__ import annotations

import argparse
import difflib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from unittest import mock

from barnabas.cli.layout import width_of
from barnabas.main import command_group
from barnabas.verify.history import write_history
from tests.cli.made_up_cluster import HOSTILE, at_noon, pretend
from tests.verify.stories import history

FOLDER = Path(__file__).with_name("screens")
WIDTHS = (60, 80, 120)
_LINES = 100
_STYLE = re.compile(r"\x1b\[[0-9;]*m")

SCREENS = {
    "topic-list": "topic list",
    "topic-create": "topic create orders payments",
    "topic-create-unknown-setting": "topic create orders -c retention.mss=1",
    "topic-configs": "topic configs cleanup.policy retention.ms",
    "topic-configs-unknown": "topic configs retention.mss",
    "topic-describe": "topic describe orders",
    "topic-describe-unknown": "topic describe ordrs",
    "topic-alter": "topic alter orders -p 12 -c retention.ms=86400000 -c cleanup.policy=compact -c max.message.bytes=2000000",
    "topic-delete": "topic delete orders payment",
    "topic-delete-internal": "topic delete payments __consumer_offsets",
    "topic-which-partition": "topic which-partition orders customer-42",
    "group-list": "group list",
    "group-describe": "group describe orders-app",
    "group-describe-quiet": "group describe quiet",
    "group-describe-wide": "group describe orders-app --wide",
    "group-describe-members": "group describe orders-app --members",
    "group-describe-share": "group describe dispatch",
    "group-describe-hostile": f"group describe -s {shlex.quote(HOSTILE)} {shlex.quote(HOSTILE + '?')}",
    "group-describe-unknown": "group describe order-app",
    "group-delete": "group delete quiet orders-ap",
    "group-why": "group why orders-app --moves",
    "group-why-quiet": "group why quiet",
    "group-reset-offsets": "group reset-offsets quiet --topic orders:0,1,2 --to-latest",
    "group-reset-offsets-new": "group reset-offsets quite --topic orders:0,1 --to-latest",
    "config-describe": "config describe topic orders --all",
    "config-describe-two": "config describe topic orders payments",
    "config-describe-documentation": "config describe topic orders --all --documentation",
    "config-describe-synonyms": "config describe broker 1 -k retention.ms --synonyms",
    "config-describe-unset": "config describe group quiet orders-app",
    "config-describe-group-unknown": "config describe group quiet order-app",
    "config-alter": "config alter topic orders --set retention.ms=1 --set segment.ms=60000 --delete max.message.bytes",
    "config-alter-unknown-setting": "config alter broker 1 --set log.cleaner.thread=2",
    "topic-trim": "topic trim orders:0,1 --before -1000",
    "topic-trim-nothing": "topic trim orders:0 --before 1000",
    "group-delete-offsets": "group delete-offsets orders-app --topic orders:0,1",
    "cluster-info": "cluster info",
    "cluster-status": "cluster status",
    "cluster-nodes": "cluster nodes",
    "cluster-quorum": "cluster quorum",
    "cluster-drain": "cluster drain 1",
    "cluster-drain-unknown": "cluster drain 7",
    "cluster-rebalance": "cluster rebalance --dry-run",
    "broker-list": "broker list",
    "broker-describe": "broker describe 1",
    "broker-logdirs": "broker logdirs --partitions",
    "quota-list": "quota list",
    "quota-set": "quota set --client-id reporting consumer_byte_rate=1048576",
    "quota-delete": "quota delete --client-id reporting",
    "quota-delete-none": "quota delete --client-id reportin",
    "quota-delete-other": "quota delete --client-id reporting request_percentage",
    "cut-create": "cut create release payments orders --at 2026-11-18T06:00:00 --dry-run",
    "cut-create-twice": "cut create old orders",
    "cut-list": "cut list",
    "cut-show": "cut show before-release-2026.11",
    "cut-show-unknown": "cut show before-release",
    "cut-show-export": "cut show old --export",
    "cut-diff": "cut diff before-release-2026.11 old",
    "cut-diff-now": "cut diff old",
    "cut-delete": "cut delete old od",
    "spark-status": "spark status",
    "spark-status-unknown": "spark status quiet nobody",
    "txn-list": "txn list",
    "txn-describe": "txn describe billing-7",
    "txn-describe-unknown": "txn describe biling-7",
    "txn-abort": "txn abort billing-7",
    "txn-abort-hanging": "txn abort --topic orders:2 --start-offset 1284009",
    "txn-doctor": "txn doctor",
    "acl-list": "acl list",
    "acl-create": "acl create --allow-principal User:alice --operation read --operation write --topic orders",
    "acl-delete": "acl delete --group orders-app --dry-run",
    "acl-explain": "acl explain --principal User:alice --host 10.0.0.7 --operation read --topic orders",
    "acl-explain-denied": "acl explain --principal User:bob --host 10.0.0.7 --operation write --topic orders",
    "user-list": "user list",
    "token-describe": "token describe",
    "dlq-list": "dlq list",
    "dlq-show": "dlq show orders.dlq",
    "dlq-redrive": "dlq redrive orders.dlq --dry-run",
    "dlq-purge": "dlq purge orders.dlq --redriven",
    "verify-check": "verify --check run.jsonl",
}  # fmt: skip


HISTORY = history("p0 ok txn s0:1@0 s0:3@2", "p1 ok send s0:2@1", "p2 fail txn s1:4", "final r0:1@0,2@1,3@2 r1:4@0")


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def text_of(name: str, screens: dict[int, str]) -> str:
    """Return what the file of a command holds: its screen at each width."""
    ruled = "".join(f"{f' {width} columns '.center(width, '-')}\n{screen}\n" for width, screen in screens.items())
    return f"$ barnabas {ascii(SCREENS[name])[1:-1]}\n{ruled}"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        return _STYLE.sub("", self.getvalue()).splitlines()


def shown_here(name: str, width: int) -> str:
    """Return a command's screen: what it prints to a terminal, folded where a terminal would fold it."""
    terminal = _Terminal()
    _run_on(terminal, terminal, name, width)
    return "\n".join(part.rstrip() for line in terminal.lines() for part in _folded(line, width))


def tables_of(name: str, width: int) -> list[str]:
    """Return the lines that a command prints on a terminal, without its errors and notes."""
    terminal = _Terminal()
    _run_on(terminal, _Terminal(), name, width)
    return terminal.lines()


def _run_on(out: _Terminal, err: _Terminal, name: str, width: int) -> None:
    size = mock.patch("shutil.get_terminal_size", return_value=os.terminal_size((width, _LINES)))
    with redirect_stdout(out), redirect_stderr(err), size:
        run(name)


def _folded(line: str, width: int) -> list[str]:
    parts = [""]
    for character in line:
        if width_of(parts[-1] + character) > width:
            parts.append("")
        parts[-1] += character
    return parts


class Tmux:
    """A tmux server with no user's settings, for as long as the context."""

    def __enter__(self) -> Tmux:
        self._folder = tempfile.TemporaryDirectory()
        environment = {key: value for key, value in os.environ.items() if key not in ("TMUX", "COLUMNS", "LINES")}
        self._environment = environment | {"LC_ALL": "C.UTF-8", "PYTHONPATH": os.pathsep.join(sys.path)}
        self._command = ["tmux", "-S", f"{self._folder.name}/socket", "-f", os.devnull]
        self._call("new-session", "-d", "-s", "holder")
        return self

    def __exit__(self, *_: object) -> None:
        self._call("kill-server")
        self._folder.cleanup()

    def _call(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command, *arguments], check=True, capture_output=True, env=self._environment, timeout=60
        )
        return done.stdout.decode()

    def screens(self, name: str) -> dict[int, str]:
        """Return a command's screen at each width."""
        shown = {}
        for width in WIDTHS:
            session = f"{name}-{width}"
            command = shlex.join([sys.executable, "-m", "tests.cli.screens", "--show", name])
            finish = shlex.join([*self._command, "wait-for", "-S", session])
            size = ("-x", str(width), "-y", str(_LINES))
            self._call("new-session", "-d", "-s", session, *size, f"{command}; {finish}; cat")
        for width in WIDTHS:
            session = f"{name}-{width}"
            self._call("wait-for", session)
            captured = self._call("capture-pane", "-p", "-t", session).rstrip()
            self._call("kill-session", "-t", session)
            shown[width] = "\n".join(line.rstrip() for line in captured.splitlines())
        return shown


def run(name: str) -> None:
    """Run a command against the made-up cluster, in this process."""
    with pretend(), at_noon(), mock.patch.dict(os.environ), tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_history(Path("run.jsonl"), HISTORY)
        os.environ.pop("BARNABAS_BOOTSTRAP_SERVERS", None)
        with suppress(SystemExit):
            command_group().main(args=shlex.split(SCREENS[name]), prog_name="barnabas")


def _main() -> int:
    parser = argparse.ArgumentParser(description="Compare the screens of every table with the files.")
    parser.add_argument("--write", action="store_true", help="write the files instead")
    parser.add_argument("--show", choices=list(SCREENS), help="run one command here")
    options = parser.parse_args()
    if options.show:
        run(options.show)
        return 0
    if shutil.which("tmux") is None:
        print("tmux is not installed: the screens are compared without it (tests/cli/test_screens.py)")
        return 0
    differences = 0
    FOLDER.mkdir(exist_ok=True)
    with Tmux() as tmux:
        for name in SCREENS:
            screens = text_of(name, tmux.screens(name))
            before = path_of(name).read_text() if path_of(name).exists() else ""
            if screens != before:
                differences += 1
                lines = (before.splitlines(), screens.splitlines())
                print("\n".join(difflib.unified_diff(*lines, f"{name}.txt", "tmux", lineterm="")))
            if options.write:
                path_of(name).write_text(screens)
    print(f"{len(SCREENS)} commands at {len(WIDTHS)} widths, {differences} {'changed' if options.write else 'differ'}")
    return 1 if differences and not options.write else 0


if __name__ == "__main__":
    sys.exit(_main())
