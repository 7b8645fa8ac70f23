"""A partition's shard, with its timers and its batches."""

from __future__ import annotations

from barnabas.coordinator.shard_context import ShardContext
from barnabas.coordinator.timer import CoordinatorTimer
from tests.coordinator.sums import Sum
from tests.coordinator.virtual_loop import VirtualLoop


def test_repr() -> None:
    timer = CoordinatorTimer(VirtualLoop(), lambda key, operation: None)
    context = ShardContext(3, 7, Sum(3, timer), timer)
    assert repr(context) == "<ShardContext 3 loading epoch=7 next=0>"
