"""Three voters over metadata logs on disks: segments roll, leaders change, and tails are cut off."""

from __future__ import annotations

import random

import pytest

from tests.quorum.disk_log import DiskLog
from tests.raft.quorum_of_drivers import Quorum


@pytest.mark.parametrize("seed", range(3))
def test_the_logs_are_the_same_after_many_leaders(seed: int) -> None:
    rng = random.Random(seed)
    quorum = Quorum(DiskLog)
    for turn in range(20):
        leader = quorum.leader()
        for _ in range(rng.randrange(5)):
            if leader.driver.node.is_leader:
                leader.driver.append([b"%d" % turn] * rng.randrange(1, 4))
            quorum.loop.advance(rng.randrange(20))
        quorum.cut = {rng.choice((1, 2, 3))}
        if leader.key.id in quorum.cut and leader.driver.node.is_leader:
            leader.driver.append([b"lost"])
        quorum.loop.advance(rng.randrange(8_000))
        quorum.cut = set()
        quorum.loop.advance(rng.randrange(3_000))
    quorum.loop.advance(10_000)  # Whoever was cut off has come back, and there is one leader.
    quorum.leader().driver.append([b"last"])
    members = list(quorum.members.values())
    quorum.run_until(lambda: all(member.values()[-1:] == [b"last"] for member in members))
    assert len({tuple(member.log.contents()) for member in members}) == 1
    assert len({member.driver.node.high_watermark for member in members}) == 1
    assert sum(member.log.truncations for member in members) > 0
    assert quorum.leader().driver.node.epoch > 3
