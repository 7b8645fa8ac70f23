"""`streams_smoke_test` and `streams_broker_bounce_test` of kafkatest, exactly once: Kafka Streams' own smoke test while brokers die.

Its driver writes for a minute and a half. Its application aggregates in windows, tables and joins, and the driver compares all results with
what they must be. With exactly-once every result is right, whether brokers or the application bounced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.bounces import bounce
from tests.cluster.kafkatest.smoke import TOPICS, Smoke
from tests.cluster.node_process import KINDS
from tests.cluster.topics import create_safe_topics

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture
def smoke(kind: str, tmp_path: Path) -> Iterator[Smoke]:
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(kind, tmp_path / "nodes"))
        create_safe_topics(cluster, TOPICS)
        made = Smoke(cluster, tmp_path)
        stack.callback(made.close)
        yield made


@pytest.mark.parametrize("is_clean", [False, True], ids=["hard", "clean"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_brokers_bounce(smoke: Smoke, is_clean: bool) -> None:
    """Whichever broker leads the input is bounced, as often as the driver leaves time for."""
    smoke.start(0)
    smoke.driver.start()
    smoke.await_processed(0)
    bounced = 0
    while not smoke.driver.has_said("Result Verification") and bounced < 5:
        bounce(smoke.cluster, smoke.cluster.leader_of("data", 0), is_clean=is_clean)
        bounced += 1
        if smoke.driver.is_up:
            smoke.await_processed(0)
    assert bounced >= 3, f"only {bounced} bounces"
    smoke.check()
    smoke.processors[0].stop()
    assert not smoke.processors[0].has_said("SMOKE-TEST-CLIENT-EXCEPTION"), smoke.processors[0].last_lines()


@pytest.mark.parametrize("is_clean", [False, True], ids=["hard", "clean"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_applications_bounce(smoke: Smoke, is_clean: bool) -> None:
    """One instance takes over from the other, and a broker is killed meanwhile."""
    smoke.start(0)
    smoke.driver.start()
    smoke.await_processed(0)
    smoke.processors[0].stop(is_clean=is_clean)
    smoke.start(1)
    smoke.await_processed(1)
    bounce(smoke.cluster, smoke.cluster.leader_of("data", 1), is_clean=False)
    smoke.processors[1].stop(is_clean=is_clean)
    smoke.start(2)
    smoke.check()
