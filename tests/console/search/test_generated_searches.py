"""Searches drawn from a seed equal a count made from the log."""

from __future__ import annotations

import random
import time
from pathlib import Path

import barnabas
from tests.console.search.generated_searches import Shop, play

SEARCHES = 6


def test_searches_equal_the_log_on_disk() -> None:
    with barnabas.Broker(config={"log.cleaner.backoff.ms": 100}) as broker:
        shop = Shop(broker.bootstrap_servers, Path(broker.data_dir), random.Random(24), time.time_ns() // 1_000_000)
        try:
            shop.fill(rounds=15)
            played = play(shop, SEARCHES)
        finally:
            shop.close()
    assert played.exact > 3 * played.changed
    assert played.found > 10
    # The searches came across what makes them hard.
    assert min(played.removed, played.empty) > 0
