"""200 searches on each broker equal a count made from its log, with transactions, compaction and retention meanwhile."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.conform.brokers import broker
from tests.console.search.generated_searches import Shop, play

pytestmark = [pytest.mark.conform, pytest.mark.long]

SEARCHES = 200


@pytest.mark.parametrize("name", ["barnabas", "apache-kafka"])
def test_searches_equal_the_log_on_disk(name: str, tmp_path: Path) -> None:
    with broker(name, tmp_path / name, {"log.cleaner.backoff.ms": "200"}) as running:
        shop = Shop(running.bootstrap_servers, running.data_dir, random.Random(2024), time.time_ns() // 1_000_000)
        try:
            shop.fill(rounds=60)
            played = play(shop, SEARCHES)
        finally:
            shop.close()
    assert played.exact > 3 * played.changed
    assert played.found > 500
    assert min(played.removed, played.empty) > 0
