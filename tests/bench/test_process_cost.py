"""What processes cost that come and go."""

from __future__ import annotations

import subprocess
import sys

from bench.process_cost import FamilyCost

from bench import process_cost


def test_a_process_that_ended_still_counts(monkeypatch):
    seen = iter([{1: 5.0}, {1: 6.0, 2: 3.0}, {1: 7.0}])
    monkeypatch.setattr(process_cost, "cpu_by_process", lambda _: next(seen))
    with FamilyCost(1, every_seconds=600) as cost:
        cost.sample()
    assert cost.cpu == 5.0, "two seconds of the first, three of the second"


def test_peak_memory_is_that_of_the_process():
    with subprocess.Popen(
        [sys.executable, "-c", "x = b'x' * 10**8; print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert 100 <= process_cost.peak_megabytes(process.pid) < 200
        process.communicate(b"\n")
