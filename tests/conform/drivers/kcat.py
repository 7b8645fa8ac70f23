"""Driver for kcat: `python kcat.py KCAT BOOTSTRAP`. Each command is one or more runs of the program; a transaction is one run left open.

A run sends records of one set of headers, so records are cut into runs where headers change; null values need a run of their own (-Z).
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
from typing import Any

import secured
from loop import serve

KEY, RECORD = "\x1f", "\x1e"
PATIENCE_SECONDS = 240
IN_TRANSACTION = "-> InTransaction"  # what librdkafka logs when a transaction has begun


class Failed(Exception):
    """A run that ended with an error; the text is what it printed."""


class Driver:
    def __init__(self, program: str, bootstrap: str) -> None:
        self.program = program
        self.bootstrap = bootstrap
        self.security = [f"-X{name}={value}" for name, value in secured.librdkafka().items()]
        self.positions: dict[tuple[str, int], int] = {}
        self.isolation = "read_committed"
        self.settings: list[str] = []
        self.transactional = False
        self.transaction: subprocess.Popen[str] | None = None
        self.log: list[str] = []

    def version(self) -> str:
        told = subprocess.run([self.program, "-V"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"Version (\S+) .*librdkafka (\S+)", told)
        assert found
        return f"kcat {found[1]} (librdkafka {found[2]})"

    def run(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [self.program, "-b", self.bootstrap, *self.security, "-m", "30", *args]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        if done.returncode:
            raise Failed(done.stderr)
        return done

    # --- producing -----------------------------------------------------------------------------------------------

    def produce(self, topic: str, partition: int, records: list[dict[str, Any]], compression: str, acks: str,
                idempotent: bool, batch_bytes: int, max_request_bytes: int) -> list[int]:  # fmt: skip
        settings = {"acks": acks, "enable.idempotence": str(idempotent).lower(), "batch.size": batch_bytes,
                    "message.max.bytes": max_request_bytes, "linger.ms": 20}  # fmt: skip
        args = ["-z", compression, *(f"-X{name}={value}" for name, value in settings.items())]
        offsets = []
        for (headers, null), run in itertools.groupby(records, lambda r: (r["headers"], r["value"] is None)):
            how = ["-P", "-vvv", "-t", topic, "-p", str(partition), "-K", KEY, "-D", RECORD, *args]
            how += [f"-H{name}" if value is None else f"-H{name}={value}" for name, value in headers]
            told = self.run(*how, *["-Z"] * null, stdin="".join(map(line, run))).stderr
            offsets += [
                int(offset) for offset in re.findall(r"Message delivered to partition \d+ \(offset (\d+)\)", told)
            ]
        if len(offsets) != len(records):
            raise Failed(f"{len(offsets)} of {len(records)} records delivered")
        return offsets

    def open_producer(self, transactional_id: str | None, client_id: str, timeout_ms: int) -> bool:
        self.settings = [f"-Xclient.id={client_id}", "-Xlinger.ms=5"]
        self.transactional = transactional_id is not None
        if self.transactional:
            self.settings += [f"-Xtransactional.id={transactional_id}", f"-Xtransaction.timeout.ms={timeout_ms}"]
        return True

    def begin(self) -> bool:
        return True

    def send(self, topic: str, partition: int, records: list[dict[str, Any]]) -> None:
        """In a transaction the run stays open, and says which offsets it was given only when it ends."""
        how = [
            self.program,
            "-b",
            self.bootstrap,
            *self.security,
            "-P",
            "-t",
            topic,
            "-p",
            str(partition),
            "-K",
            KEY,
            "-D",
            RECORD,
        ]
        if not self.transactional:
            self.run(*how[3 + len(self.security) :], *self.settings, stdin="".join(map(line, records)))
            return
        begun = threading.Event()
        self.log = []
        self.transaction = subprocess.Popen(
            [*how, *self.settings, "-d", "eos", "-m", "30"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        threading.Thread(target=self.follow, args=(self.transaction, begun), daemon=True).start()
        if not begun.wait(PATIENCE_SECONDS):
            raise Failed("".join(self.log))
        assert self.transaction.stdin
        self.transaction.stdin.write("".join(map(line, records)))
        self.transaction.stdin.flush()

    def follow(self, process: subprocess.Popen[str], begun: threading.Event) -> None:
        assert process.stderr
        for one in process.stderr:
            self.log.append(one)
            if IN_TRANSACTION in one:
                begun.set()

    def commit_transaction(self) -> bool:
        assert self.transaction
        assert self.transaction.stdin
        self.transaction.stdin.close()
        if self.transaction.wait(PATIENCE_SECONDS):
            raise Failed("".join(one for one in self.log if "ERROR" in one or "rror:" in one))
        return True

    # --- consuming -----------------------------------------------------------------------------------------------

    def assign(self, group: str | None, partitions: list[list[Any]], isolation: str) -> bool:
        self.positions = {(str(topic), int(partition)): 0 for topic, partition in partitions}
        self.isolation = isolation
        return True

    def poll(self, max: int, timeout_ms: int) -> list[Any]:
        """One run to the end of each partition, from where the last one ended."""
        found: list[Any] = []
        for (topic, partition), offset in self.positions.items():
            if len(found) == max:
                break
            args = [
                "-C",
                "-q",
                "-e",
                "-J",
                "-t",
                topic,
                "-p",
                str(partition),
                "-o",
                str(offset),
                "-c",
                str(max - len(found)),
            ]
            printed = self.run(*args, f"-Xisolation.level={self.isolation}", "-Xauto.offset.reset=earliest").stdout
            rows = [row(json.loads(one)) for one in printed.splitlines()]
            if rows:
                self.positions[topic, partition] = rows[-1][2] + 1
            found += rows
        return found

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        self.positions[topic, partition] = offset
        return True

    def bounds(self, topic: str, partition: int) -> list[int]:
        return [self.at(topic, partition, time) for time in (-2, -1)]

    def at(self, topic: str, partition: int, time: int) -> int:
        return int(self.run("-Q", "-t", f"{topic}:{partition}:{time}").stdout.split()[-1])

    def close(self) -> bool:
        if self.transaction and self.transaction.poll() is None:
            self.transaction.kill()
        return True


def line(record: dict[str, Any]) -> str:
    key = "" if record["key"] is None else record["key"] + KEY
    return key + (record["value"] or "") + RECORD


def row(m: dict[str, Any]) -> list[Any]:
    headers = m.get("headers", [])
    pairs = [list(pair) for pair in zip(headers[::2], headers[1::2], strict=True)]
    return [m["topic"], m["partition"], m["offset"], m["key"], m["payload"], pairs]


if __name__ == "__main__":
    serve(Driver(sys.argv[1], sys.argv[2]), lambda error: None)
