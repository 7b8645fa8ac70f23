"""Seeds of the sink's simulation run clean, the same seed runs the same, and each scenario is drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.simulation.sink.plan import OF_SEVERAL_NODES, SCENARIOS, SinkPlan
from tests.simulation.sink.process import KILLED_BEFORE, ProcessFault
from tests.simulation.sink.sink_cluster import play, run

pytestmark = pytest.mark.usefixtures("quiet")

SEEDS = {1: (18, 22, 26, 46, 61, 20517), 3: (4, 94)}
"""By the number of nodes: zombies, expired ids, kills, a restored checkpoint, a broker that stops at a claim.

On three: a deposed leader, and a broker that is away at the first claim while another loses its disk's last writes later.
"""


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "seed"), [(nodes, seed) for nodes, seeds in SEEDS.items() for seed in seeds])
def test_seeds_run_clean(nodes, seed):
    result = run(seed, nodes=nodes)
    assert result.violations == {}
    assert result.sink.counts["decisions"] > 2
    assert result.sink.counts["batches reported"] > 2


@pytest.mark.slow
def test_a_seed_replays_exactly():
    first, second = run(18, nodes=1), run(18, nodes=1)
    assert first.sink == second.sink
    assert first.timeline.digest() == second.timeline.digest()


@pytest.mark.slow
def test_a_batch_that_is_skipped_leaves_nothing_open():
    """One driver dies before its decision, the next before it ends what that one left; the third finds the batch decided."""
    faults = [ProcessFault(KILLED_BEFORE, "Produce", 1), ProcessFault(KILLED_BEFORE, "Produce", 2)]
    plan = SinkPlan.of(2, 1)
    assert plan.scenario == "kills"
    one_batch = replace(
        plan, rows=1, largest_batch=1, last_rows=0, driver_faults=0.0, worker_faults=0.0, fault_kinds=()
    )
    result = play(one_batch, first_faults=faults)
    assert result.sink.counts["batches skipped"] == 1
    assert result.violations == {}


def test_seeds_mean_every_scenario():
    drawn = Counter(SinkPlan.of(seed, 3).scenario for seed in range(200))
    assert set(drawn) == set(SCENARIOS)
    assert {SinkPlan.of(seed, 1).scenario for seed in range(200)} == set(SCENARIOS) - OF_SEVERAL_NODES


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("nodes", [1, 3])
def test_many_seeds_run_clean_and_meet_everything(nodes):
    met: Counter[str] = Counter()
    for seed in range(150):
        result = run(seed, nodes=nodes)
        assert result.violations == {}, f"seed {seed} of {nodes} nodes"
        met += result.sink.counts
    assert {"batches skipped", "transactions aborted", "zombie drivers", "speculative attempts"} <= set(met)
    assert {"drivers killed before", "drivers killed sending", "drivers killed after"} <= set(met)
    assert {"checkpoints that got older", "workers that outlive their driver", "writes that came too late"} <= set(met)
