"""How late the loop is, on a loop whose time the test moves."""

from __future__ import annotations

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from barnabas.metrics.loop_lag import LoopLag
from barnabas.simulation.world_loop import WorldLoop


def test_a_turn_that_takes_long_is_in_its_bucket() -> None:
    loop = WorldLoop()
    lag = LoopLag(loop)

    async def story() -> None:
        await asyncio.sleep(1.05)
        loop.advance(0.35)
        await asyncio.sleep(1)
        lag.close()
        await asyncio.sleep(1)

    loop.run_until_complete(story())
    (found,) = text_string_to_metric_families("".join(lag.families()))
    assert (found.name, found.type) == ("barnabas_loop_lag_seconds", "histogram")
    buckets = {s.labels["le"]: s.value for s in found.samples if s.name.endswith("_bucket")}
    assert buckets["+Inf"] == buckets["0.5"] == buckets["0.25"] + 1
    (total,) = [s.value for s in found.samples if s.name.endswith("_sum")]
    assert 0.29 < total < 0.31
