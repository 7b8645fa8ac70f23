"""`barnabas produce` and `consume` beside kcat: `python -m bench.kcat [--records 1000000] [--bytes 100] [--runs 3]`.

The same lines go from a file or a pipe into a topic, and from the topic into a file or a pipe, through both programs in turn; each run
includes the program's start. CPU is that of the program, user and system, without the broker's. kcat is found in the path (1.7.1 in
Debian's package kcat).
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import barnabas

TOPIC = "lines"
PARTITIONS = 4
OURS = [sys.executable, "-m", "barnabas"]


class Spent(NamedTuple):
    """Seconds of one run."""

    wall: float
    cpu: float


def commands(servers: str, records: int) -> dict[str, dict[str, list[str]]]:
    """Return the command lines by work and program."""
    kcat = shutil.which("kcat")
    if kcat is None:
        raise SystemExit("there is no kcat: apt-get install kcat")
    options = ["-b", servers, "-t", TOPIC]
    partitioner = ["-X", "partitioner=murmur2_random"]
    keyed = "%k %p %o %s\n"
    return {
        "produce lines": {
            "kcat": [kcat, "-P", *options, *partitioner],
            "barnabas": [*OURS, "produce", *options],
        },
        "produce keys and values": {
            "kcat": [kcat, "-P", "-K:", *options, *partitioner],
            "barnabas": [*OURS, "produce", "-K:", *options],
        },
        "consume values": {
            "kcat": [kcat, "-C", "-q", "-o", "beginning", "-c", str(records), *options],
            "barnabas": [*OURS, "consume", "-n", str(records), *options],
        },
        "consume keys, places and values": {
            "kcat": [kcat, "-C", "-q", "-f", keyed, "-o", "beginning", "-c", str(records), *options],
            "barnabas": [*OURS, "consume", "-f", keyed, "-n", str(records), *options],
        },
    }


def run(command: list[str], lines: Path | None, *, piped: bool, folder: Path) -> Spent:
    """Run a program once; its input is the lines, its output a file, or both are pipes."""
    feeder = drain = None
    source: int | None = subprocess.DEVNULL
    target = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    if lines is not None and piped:
        feeder = subprocess.Popen(["cat", str(lines)], stdout=subprocess.PIPE)
        assert feeder.stdout is not None
        source = feeder.stdout.fileno()
    elif lines is not None:
        source = os.open(lines, os.O_RDONLY)
    elif piped:
        drain = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=target)
        assert drain.stdin is not None
        os.dup2(drain.stdin.fileno(), target)
        drain.stdin.close()
    began = time.monotonic()
    program = subprocess.Popen(command, stdin=source, stdout=target)
    os.close(target)
    _, status, usage = os.wait4(program.pid, 0)
    wall = time.monotonic() - began
    program.returncode = os.waitstatus_to_exitcode(status)
    if program.returncode:
        raise SystemExit(f"{command[0]} ended with {program.returncode}")
    for each in (feeder, drain):
        if each is not None:
            each.wait()
    return Spent(wall, usage.ru_utime + usage.ru_stime)


def measure(records: int, size: int, runs: int) -> dict[tuple[str, str, str], list[Spent]]:
    """Run each work through both programs in turn; the keys are work, `file` or `pipe`, and program."""
    found: dict[tuple[str, str, str], list[Spent]] = {}
    with barnabas.Broker() as broker, tempfile.TemporaryDirectory(prefix="bench-kcat-") as name:
        folder = Path(name)
        lines = folder / "lines"
        lines.write_bytes(b"".join(f"k{number % 1000:03}:{number:0{size - 6}}\n".encode() for number in range(records)))
        works = commands(broker.bootstrap_servers, records)
        for _ in range(runs):
            for work, programs in works.items():
                for way in ("file", "pipe"):
                    for program, command in programs.items():
                        is_produce = work.startswith("produce")
                        if is_produce:
                            broker.reset()
                            broker.create_topic(TOPIC, partitions=PARTITIONS)
                        spent = run(command, lines if is_produce else None, piped=way == "pipe", folder=folder)
                        found.setdefault((work, way, program), []).append(spent)
    return found


def table(found: dict[tuple[str, str, str], list[Spent]]) -> str:
    """Return the medians as a table in Markdown."""
    rows = [
        "| work | through a | kcat, s | kcat, CPU s | barnabas, s | barnabas, CPU s | times kcat, s | times kcat, CPU |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for work, way in dict.fromkeys((work, way) for work, way, _ in found):
        medians = {
            program: Spent(*(statistics.median(column) for column in zip(*found[work, way, program], strict=True)))
            for program in ("kcat", "barnabas")
        }
        theirs, ours = medians["kcat"], medians["barnabas"]
        rows.append(
            f"| {work} | {way} | {theirs.wall:.2f} | {theirs.cpu:.2f} | {ours.wall:.2f} | {ours.cpu:.2f}"
            f" | {ours.wall / theirs.wall:.1f}x | {ours.cpu / theirs.cpu:.1f}x |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.kcat", description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=100, help="of a line, with its key and its end")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(table(measure(options.records, options.bytes, options.runs)))


if __name__ == "__main__":
    main()
