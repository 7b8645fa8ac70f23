"""What a seed of the sink's simulation means: the cluster and its faults, the queries, and what happens to Spark's processes."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tests.simulation.cluster_plan import ClusterPlan
from tests.simulation.sink.process import (
    ANY,
    FROZEN_AFTER,
    FROZEN_BEFORE,
    KILLED_AFTER,
    KILLED_BEFORE,
    KILLED_SENDING,
    ProcessFault,
)

LOG = "the commit log"
"""The step after a batch's commit: Spark writes down that the batch is done."""
KILLS, FREEZES = (KILLED_BEFORE, KILLED_SENDING, KILLED_AFTER), (FROZEN_BEFORE, FROZEN_AFTER)
OF_DRIVERS: tuple[str, ...] = (
    "EndTxn",
    "EndTxn",
    "EndTxn",
    "Produce",
    "InitProducerId",
    "ListTransactions",
    "Fetch",
    LOG,
    LOG,
    ANY,
)
OF_ZOMBIES = ("ListTransactions", "Fetch", "AddPartitionsToTxn", "Produce", "EndTxn", LOG)
"""Where a driver that goes on later stands still: most of them are between its claim and its decision."""
OF_WORKERS = ("EndTxn", "Produce", "Produce", "InitProducerId", "AddPartitionsToTxn", ANY)
EXPIRATION_MS = 4_000

SCENARIOS = (
    "kills",
    "kills",
    "zombies",
    "zombies",
    "speculation",
    "restored",
    "deposed",
    "deposed",
    "moves",
    "expired",
    "names",
    "overlap",
)
"""A seed has one; most of them have kills too."""
FREEZING = ("zombies", "speculation", "overlap")
"""The scenarios in which many processes stand still and go on later."""
AIMED = {"deposed": ("depose",), "moves": ("move_coordinator_back", "move_coordinator_twice", None)}
"""The faults of the cluster that a scenario needs."""
OF_SEVERAL_NODES = frozenset(AIMED)


@dataclass(frozen=True)
class SinkPlan(ClusterPlan):
    """What a seed means.

    Attributes:
        scenario: the kind of trouble that this run is about; see `SCENARIOS`.
        names: prefix and query id of each sink.
        are_writes: whether the batches are batch writes with numbers, in place of a stream's.
        rows: how many rows each sink's source has in the end.
        driver_faults, worker_faults: the probability that a process has a fault.
        freezes: how many of these faults leave a process that goes on later.
        speculates: whether a second attempt of a slow task begins.
        restores: the probability that a driver's successor finds an older checkpoint.
        queued_bytes: how many bytes wait in a task's producer before it sends a request.
        rows_at_a_time: how many rows a task gets at a time.
        last_rows: how many rows come when all faults have ended, for one batch more.
    """

    scenario: str
    names: tuple[tuple[str, str], ...]
    are_writes: bool
    rows: int
    largest_batch: int
    workers: int
    two_phase: bool
    driver_faults: float
    worker_faults: float
    freezes: float
    speculates: bool
    restores: float
    queued_bytes: int
    rows_at_a_time: int
    last_rows: int

    @staticmethod
    def of(seed: int, nodes: int) -> SinkPlan:
        """Return what a seed means."""
        rng = random.Random(f"sink {seed}")
        scenarios = [each for each in SCENARIOS if nodes > 1 or each not in OF_SEVERAL_NODES]
        scenario = rng.choice(scenarios)
        # Each row of a task makes a request of its own, mostly to a new partition.
        is_slow = scenario == "overlap" or rng.random() < 0.2
        cluster = replace(
            ClusterPlan.small(seed, nodes, rng),
            producers=0,
            committers=0,
            transactors=0,
            has_mover=False,
            has_recreator=False,
            stops_in_order=False,
            fault_seconds=40.0,
            fault_kinds=_fault_kinds(scenario, nodes, rng),
            fault_every_seconds=rng.choice((1.0, 3.0)),
            partitions=4 if is_slow else 2,
            aimed=rng.choice(AIMED[scenario]) if scenario in AIMED else None,
        )
        is_deposed = scenario == "deposed"
        names = (("shop-eu", "orders"), ("shop", "eu-orders")) if scenario == "names" else (("shop", "orders"),)
        return SinkPlan(
            **vars(cluster),
            scenario=scenario,
            names=names,
            are_writes=scenario == "overlap" or rng.random() < 0.2,
            rows=rng.choice((12, 20, 30)) * (2 if is_deposed else 1),
            largest_batch=4 if is_deposed else rng.choice((5, 10)),
            workers=rng.choice((1, 2, 3)),
            two_phase=rng.random() < (0.4 if scenario == "expired" else 0.7),
            driver_faults=0.3 if scenario in ("deposed", "overlap", "names") else 0.8,
            worker_faults=0.5 if scenario in FREEZING else 0.15,
            freezes=0.6 if scenario in FREEZING else 0.1,
            speculates=scenario == "speculation" or rng.random() < 0.2,
            restores=0.5 if scenario == "restored" else 0.0,
            queued_bytes=0 if is_slow else 150,
            rows_at_a_time=1 if is_slow else 2,
            last_rows=3,
        )

    def properties(self) -> dict[str, str]:
        """Return the settings of every node."""
        more = {"transaction.two.phase.commit.enable": str(self.two_phase).lower()}
        if self.scenario == "expired":
            more["transactional.id.expiration.ms"] = str(EXPIRATION_MS)
            more["transaction.remove.expired.transaction.cleanup.interval.ms"] = "1000"
        return {**super().properties(), **more}

    def driver_fault(self, rng: random.Random) -> ProcessFault | None:
        """Return the fault of a new driver, None for none."""
        return self._fault(rng, self.driver_faults, OF_ZOMBIES if self.scenario == "zombies" else OF_DRIVERS, 8)

    def worker_fault(self, rng: random.Random) -> ProcessFault | None:
        """Return the fault of a new Python worker, None for none."""
        return self._fault(rng, self.worker_faults, OF_WORKERS, 4)

    def _fault(self, rng: random.Random, rate: float, requests: tuple[str, ...], highest: int) -> ProcessFault | None:
        if rng.random() >= rate:
            return None
        kinds = FREEZES if rng.random() < self.freezes else KILLS
        request = rng.choice(requests)
        number = rng.randrange(10 * highest if request == ANY else highest)
        return ProcessFault(rng.choice(kinds), request, number, rng.choice((1.0, 5.0, 15.0)))


def _fault_kinds(scenario: str, nodes: int, rng: random.Random) -> tuple[str, ...]:
    """Return the faults of the cluster itself."""
    if scenario == "moves":
        return tuple(rng.sample(("kill", "stop", "isolate", "pause", "cut", "lose_power"), 2))
    if scenario in ("deposed", "expired", "overlap", "restored", "names"):
        return ()
    kinds = (
        ("kill", "stop", "pause", "reset", "slow_disk")
        if nodes == 1
        else ("kill", "stop", "pause", "isolate", "cut", "reset")
    )
    return (rng.choice(kinds),) if rng.random() < 0.4 else ()
