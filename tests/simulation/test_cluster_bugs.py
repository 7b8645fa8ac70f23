"""Each deliberate bug of a cluster is caught within its number of seeds. It takes minutes: `make long` runs it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.cluster import run
from tests.simulation.deliberate_bugs_of_clusters import BUGS

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Nodes under faults have much to say; other tests listen to theirs."""
    logger = logging.getLogger("barnabas")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_each_deliberate_bug_is_caught(bug: str) -> None:
    _, seeds = BUGS[bug]
    for seed in range(seeds):
        if not run(seed, bug).passed:
            return
    pytest.fail(f"{bug} went unnoticed in {seeds} seeds")
