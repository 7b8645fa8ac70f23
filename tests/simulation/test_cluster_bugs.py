"""Each deliberate bug of a cluster is caught within its number of seeds. It takes minutes: `make long` runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice

import pytest

from tests.simulation import deliberate_bugs_of_rare_worlds as rare_worlds
from tests.simulation import deliberate_bugs_of_side_topics as side_topics
from tests.simulation import deliberate_bugs_of_tuning as tuning
from tests.simulation.bug import Bug
from tests.simulation.cluster import run
from tests.simulation.cluster_plan import ClusterPlan
from tests.simulation.deliberate_bugs import BUGS as OF_ONE_BROKER
from tests.simulation.deliberate_bugs import Switch
from tests.simulation.deliberate_bugs_of_clusters import BUGS, LASTING_CUT, TRIMMER

pytestmark = pytest.mark.usefixtures("quiet")

LEAST_BUGS = 50
WORKLOADS = {bug.shown_by for bug in [*rare_worlds.BUGS.values(), *side_topics.BUGS.values(), *tuning.BUGS.values()]}
"""Fields of a plan that say whether a world has it."""


def seeds_for(bug: Bug) -> Iterator[int]:
    """Yield the seeds that count for a bug: ordinary ones, in order, whose plans have the fault that shows it."""
    for seed in count():
        plan = ClusterPlan.draw(seed)
        has = {None, plan.aimed} | ({LASTING_CUT} if plan.has_lasting_cut else set())
        if bug.shown_by in has | ({TRIMMER} if plan.has_trimmer else set()) or (
            bug.shown_by in WORKLOADS and getattr(plan, bug.shown_by)
        ):
            yield seed


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", sorted(BUGS))
def test_each_deliberate_bug_is_caught(name: str) -> None:
    bug = BUGS[name]
    seeds = list(islice(seeds_for(bug), bug.seeds))
    assert any(not run(seed, name).passed for seed in seeds), f"{name} went unnoticed in the seeds {seeds}"


@pytest.mark.parametrize("switch", [*OF_ONE_BROKER.values(), *(bug.switch for bug in BUGS.values())])
def test_each_deliberate_bug_fits_what_it_replaces(switch: Callable[[], Switch]) -> None:
    """Two did not, since what they replace had changed: every run failed with them, and showed nothing of the checkers."""
    with switch():
        pass


def test_there_are_enough_deliberate_bugs() -> None:
    assert len({*OF_ONE_BROKER, *BUGS}) >= LEAST_BUGS


def test_ordinary_seeds_meet_what_shows_each_bug() -> None:
    """Not only the test above: `make simulate` looks for bugs nobody has thought of."""
    plans = [ClusterPlan.draw(seed) for seed in range(150)]
    aimed = {plan.aimed for plan in plans}
    shown_by = {bug.shown_by for bug in BUGS.values()}
    assert shown_by - {LASTING_CUT, TRIMMER, None, *WORKLOADS} <= aimed
    for workload in WORKLOADS:
        assert any(getattr(plan, workload) for plan in plans)
    assert any(plan.has_lasting_cut for plan in plans)
    assert any(plan.has_trimmer for plan in plans)
