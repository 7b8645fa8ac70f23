"""The seeds of an example find its planted bug, and find none in the mended consumer."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.examples.stage import EXAMPLES

pytestmark = pytest.mark.slow


def test_a_seed_finds_the_consumer_that_loses_orders() -> None:
    done = subprocess.run([sys.executable, EXAMPLES / "lost_orders.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first.startswith("hasty: seed ")
    assert " of 48 orders, the first is 'order " in first
    assert second.startswith("careful: seeds 0 to ")
    assert second.endswith(" lose none")
