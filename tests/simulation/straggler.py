"""A member that has lost a partition and does not know: it commits at its former epoch, after another one has been told that it owns it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any

from barnabas.protocol.errors import ErrorCode
from tests.simulation.cluster_client import ClusterClient
from tests.simulation.history import History, LateCommit, Lease, Owned
from tests.simulation.owner import GONE, commit
from tests.simulation.workload import LOST, NOT_YET

LONGEST_PAUSE_SECONDS = 1.0


class Straggler:
    """Commits offset 0, over and over, for one of the partitions that have a newer owner. Its commits must be refused."""

    name = "straggler"

    def __init__(self, history: History, rng: random.Random) -> None:
        self._history, self._rng = history, rng

    async def run(self, connect: Callable[[str], ClusterClient], loop: Any) -> None:
        client = connect(self.name)
        while True:
            await asyncio.sleep(self._rng.random() * LONGEST_PAUSE_SECONDS)
            former = [each for each in _former(self._history.leases) if self._is_over(each)]
            if not former:
                continue
            lease = self._rng.choice(former)
            try:
                error = await commit(client, lease, 0)
            except LOST:
                continue
            self._history.late_commits.append(LateCommit(lease.member, lease.partition, lease.epoch, ErrorCode(error)))
            if error and error not in NOT_YET and error not in GONE:
                raise AssertionError(f"{self.name} was answered {ErrorCode(error).name}")

    def _is_over(self, lease: Lease) -> bool:
        """Return whether the coordinator knows that the member has lost the partition.

        A coordinator looks at the member's epoch, not at the partition (KIP-848). A member that gives up its partitions in several steps
        keeps its epoch until the last one, and may commit for all of them meanwhile.
        """
        return not lease.is_asked_back or self._history.member_epochs.get(lease.member, 0) > lease.epoch


def _former(leases: list[Lease]) -> Iterator[Lease]:
    """Yield the last lease of each partition before that of its present owner."""
    latest: dict[tuple[str, Owned], Lease] = {}
    former: dict[tuple[str, Owned], Lease] = {}
    for lease in leases:
        key = lease.group, lease.partition
        if key in latest and latest[key].member != lease.member:
            former[key] = latest[key]
        latest[key] = lease
    yield from former.values()
