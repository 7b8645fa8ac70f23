"""The whole workload on barnabas under kills, and on Apache Kafka in peace: no anomaly on either, with either protocol.

Apache Kafka 4.3.1 is not killed, because it then loses a marker now and then (docs/verify.md says how). `BARNABAS_VERIFY_SECONDS` makes
the runs longer. The clients are in a process of their own (`run_process`): when a call of librdkafka never returns, the verdict is on
what they did until then, and the run is repeated.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apache_kafka
import pytest

from barnabas.verify.faults import Killer, LocalBroker
from barnabas.verify.history import Outcome
from barnabas.verify.recorder import Recorder
from barnabas.verify.run import Settings
from tests.verify.run_process import RunProcess

SECONDS = float(os.environ.get("BARNABAS_VERIFY_SECONDS", "30"))
AROUND_SECONDS = 300.0
"""What a run takes beside its work, on a busy machine."""
RUNS = 4

pytestmark = [pytest.mark.conform, pytest.mark.timeout(3600 + 8 * SECONDS)]


def barnabas(folder: Path) -> LocalBroker:
    address = f"127.0.0.1:{apache_kafka.free_port()}"
    command = [sys.executable, "-m", "barnabas.main", "start", "--data-dir", str(folder / "data"), "--listen", address]
    return LocalBroker([*command, "--set", "group.initial.rebalance.delay.ms=0"], address, folder / "broker.log")


def apache(folder: Path) -> LocalBroker:
    node = apache_kafka.ApacheKafka(folder)
    node.format()
    properties = str(folder / "server.properties")
    command = apache_kafka.java_command("kafka.Kafka", properties, heap="768m", log4j="server-log4j2.properties")
    return LocalBroker(command, node.bootstrap_servers, folder / "broker.log")


@contextmanager
def killing(broker: LocalBroker, every_s: float, run: RunProcess) -> Iterator[Recorder]:
    """Kill the broker now and then while the clients work; it runs when the block ends."""
    recorder = Recorder({})
    killer = Killer(broker, recorder, every_s, random.Random("7-kills"), threading.Event())
    thread = threading.Thread(target=killer.run)

    def attend() -> None:
        while run.phase in ("starting", "creating topics", "warming up") and not killer.stopping.is_set():
            time.sleep(0.05)
        began = time.monotonic()
        thread.start()
        while run.phase == "working" and time.monotonic() < began + run.settings.seconds:
            time.sleep(0.05)
        killer.stopping.set()

    attending = threading.Thread(target=attend)
    if every_s:
        attending.start()
    try:
        yield recorder
    finally:
        killer.stopping.set()
        if every_s:
            attending.join()
            thread.join()
            assert killer.failure is None, killer.failure


def play(broker: LocalBroker, settings: Settings, every_s: float, history: Path) -> tuple[dict[str, Any], int]:
    """Return the verdict of a run, and how often the broker was killed in it."""
    run = RunProcess(settings, history)
    try:
        with killing(broker, every_s, run) as recorder:
            verdict = run.wait(settings.seconds + AROUND_SECONDS)
    finally:
        run.kill()
    if run.stack:
        print(f"a client of the run is stuck:\n{run.stack}")
    return verdict, recorder.counts["kill", Outcome.OK]


@pytest.mark.parametrize("protocol", ["v1", "v2"])
@pytest.mark.parametrize(
    ("start", "kill_every_s"),
    [
        pytest.param(barnabas, 4, id="barnabas"),
        pytest.param(apache, 0, id="apache-kafka", marks=pytest.mark.long),
    ],
)
def test_no_anomaly(start: Callable[[Path], LocalBroker], kill_every_s: float, protocol: str, tmp_path: Path) -> None:
    broker = start(tmp_path)
    broker.start()
    seconds = SECONDS
    stuck = 0
    try:
        for number in range(RUNS):
            settings = Settings(broker.bootstrap, seconds=seconds, seed=7 + number, protocol=protocol)
            verdict, kills = play(broker, settings, kill_every_s, tmp_path / f"history-{number}.jsonl")
            # What clients saw before one of them got stuck is as true as anything.
            assert verdict["valid"], [each["message"] for each in verdict["examples"][:3]]
            operations = verdict["statistics"]["operations"]
            is_stuck = "stuck" in operations
            stuck += is_stuck
            # On a busy machine little happens in half a minute, and what happens in less than that proves nothing.
            is_enough = operations.get("txn", {}).get("ok", 0) > 10
            if is_enough and not is_stuck:
                break
            if not is_enough:
                seconds = 4 * SECONDS
        else:
            pytest.fail(f"{RUNS} runs were not enough: a client was stuck in {stuck} of them, see above")
    finally:
        broker.stop()
    assert bool(kills) is bool(kill_every_s)
