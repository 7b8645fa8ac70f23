"""`make fuzz`: `python -m tests.fuzz [--decoder N] [--dispatcher N] [--sockets N] [--logins N] [--strangers N] …`.

Each part prints what it did; the first oracle that fails ends it with the seed and a traceback. `--guided` lets atheris choose the
bytes for the decoder by the code they reach, if it is installed (`pip install atheris`).
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.certificates import Certificates
from tests.fuzz.decoder import Decoders
from tests.fuzz.dispatcher import FuzzedNode
from tests.fuzz.logins import Logins
from tests.fuzz.part_time import timed
from tests.fuzz.sockets import attack
from tests.fuzz.strangers import Strangers
from tests.long_runs import LongRun, add_flag

ADDRESS_SPACE = 4 << 30
"""A decoder that believes an announced length fails here, not on the machine."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--decoder", type=int, default=100_000, metavar="N", help="messages and batches to decode")
    parser.add_argument(
        "--dispatcher", type=int, default=20_000, metavar="N", help="requests to a node in virtual time"
    )
    parser.add_argument("--sockets", type=int, default=5_000, metavar="N", help="frames over sockets to a process")
    parser.add_argument(
        "--guided", type=int, default=0, metavar="SECONDS", help="let atheris choose the decoder's bytes"
    )
    parser.add_argument(
        "--logins", type=int, default=50_000, metavar="N", help="logins, tokens, certificates, handshakes"
    )
    parser.add_argument(
        "--strangers", type=int, default=20_000, metavar="N", help="requests of a stranger to a controller"
    )
    parser.add_argument("--seed", type=int, default=1)
    add_flag(parser)
    given = parser.parse_args()
    run = LongRun("fuzz", "fuzz", is_kept=given.record)
    if given.sockets:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            _sockets(Path(folder), given.seed, given.sockets)
    if given.dispatcher:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            _dispatcher(Path(folder), given.seed, given.dispatcher)
    if given.logins:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            _logins(Path(folder), given.seed, given.logins)
    if given.strangers:
        _strangers(given.seed, given.strangers)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    if given.decoder:
        _decoder(given.seed, given.decoder)
    if given.guided:
        from tests.fuzz.guided import run as guide

        guide(given.seed, given.guided)
    run.ended(
        f"{given.decoder:,} messages decoded, {given.dispatcher:,} requests, {given.sockets:,} frames over sockets, "
        f"{given.logins:,} logins, {given.strangers:,} requests of strangers: no oracle failed"
    )
    return 0


def _decoder(seed: int, count: int) -> None:
    began = time.perf_counter()
    decoders = Decoders(seed)
    for _ in range(count):
        decoders.one()
    _say("decoder", seed, began, f"{decoders.tried:,} tried, {decoders.decoded:,} decoded, peak {_peak_mb():.0f} MB")


def _dispatcher(folder: Path, seed: int, count: int) -> None:
    began = time.perf_counter()
    with FuzzedNode(folder, seed) as node:
        while node.sent < count:
            node.one()
        node.pause()
        node.check_others_data()
        name, seconds = node.slowest
        text = f"{node.sent:,} sent, {node.answered:,} answered, {node.refused:,} refused"
    _say("dispatcher", seed, began, f"{text}, longest {seconds * 1000:.0f} ms {name}, peak {_peak_mb():.0f} MB")


def _logins(folder: Path, seed: int, count: int) -> None:
    began = time.perf_counter()
    logins, certificates = Logins(seed), Certificates(folder, seed)
    slowest = ("", 0.0)
    for part in (logins, certificates):
        for _ in range(count // 2):
            slowest = max(slowest, timed(part), key=lambda each: each[1])
    name, seconds = slowest
    text = f"{logins.tried + certificates.tried:,} tried, {logins.accepted + certificates.accepted:,} accepted"
    _say("logins", seed, began, f"{text}, longest {seconds * 1000:.0f} ms {name}, peak {_peak_mb():.0f} MB")


def _strangers(seed: int, count: int) -> None:
    began = time.perf_counter()
    with Strangers(seed) as strangers:
        for _ in range(count):
            strangers.one()
        strangers.check()
        name, seconds = strangers.slowest
        text = f"{strangers.sent:,} sent, {strangers.answered:,} answered, {strangers.denied:,} denied, {strangers.refused:,} refused"
    _say("strangers", seed, began, f"{text}, longest {seconds * 1000:.0f} ms {name}, peak {_peak_mb():.0f} MB")


def _sockets(folder: Path, seed: int, count: int) -> None:
    began = time.perf_counter()
    report = asyncio.run(attack(folder, seed, count))
    middle = statistics.median(report.waits)
    text = f"{report.frames:,} frames, {report.written:,} records beside them"
    waits = f"an answer took {middle * 1000:.1f} ms, at most {report.longest_wait * 1000:.0f} ms"
    _say("sockets", seed, began, f"{text}, {waits}, memory {report.idle_mb:.0f} to {report.end_mb:.0f} MB")


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _say(part: str, seed: int, began: float, text: str) -> None:
    print(f"{part}, seed {seed}: {text}; {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
