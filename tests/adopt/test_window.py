"""The window of support: by metadata.version and features, and the page's table of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.adopt.finding import Verdict
from barnabas.adopt.window import HIGHEST, LOWEST, LOWEST_BESIDE, OLDEST_BROKERS, findings_of_versions, window
from barnabas.client.features import BrokerFeatures
from barnabas.protocol.metadata_versions import NAMES

PAGE = Path(__file__).parents[2] / "docs" / "adopt.md"


def broker(level: int, highest: int = HIGHEST, **finalized: int) -> BrokerFeatures:
    named = {name.replace("_", "."): value for name, value in finalized.items()}
    return BrokerFeatures({"metadata.version": (LOWEST, highest)}, {"metadata.version": level, **named}, 100)


def verdicts(*brokers: BrokerFeatures) -> dict[str, Verdict]:
    return {each.what: each.verdict for each in findings_of_versions(dict(enumerate(brokers, 1)))}


def worst(*brokers: BrokerFeatures) -> Verdict:
    return min(verdicts(*brokers).values(), key=list(Verdict).index)


def test_every_name_of_the_window_is_known() -> None:
    assert LOWEST < LOWEST_BESIDE < OLDEST_BROKERS < HIGHEST
    assert (NAMES[LOWEST], NAMES[LOWEST_BESIDE], NAMES[OLDEST_BROKERS]) == ("3.3-IV3", "3.9-IV0", "4.0-IV3")


@pytest.mark.parametrize(
    ("level", "verdict"),
    [
        (0, Verdict.BLOCKS),
        (LOWEST - 1, Verdict.BLOCKS),
        (LOWEST, Verdict.DIFFERS),
        (LOWEST_BESIDE - 1, Verdict.DIFFERS),
        (LOWEST_BESIDE, Verdict.WORKS),
        (HIGHEST, Verdict.WORKS),
        (HIGHEST + 1, Verdict.BLOCKS),
    ],
)
def test_metadata_version(level: int, verdict: Verdict) -> None:
    assert worst(broker(level)) == verdict


def test_a_cluster_in_zookeeper() -> None:
    old = BrokerFeatures({}, {}, -1)
    found = list(findings_of_versions({1: old}))
    assert [each.verdict for each in found] == [Verdict.BLOCKS, Verdict.BLOCKS]
    assert "ZooKeeper" in found[1].what


def test_brokers_that_are_too_old_or_newer_than_ours() -> None:
    assert worst(broker(LOWEST_BESIDE, OLDEST_BROKERS - 1)) == Verdict.BLOCKS
    assert worst(broker(HIGHEST, HIGHEST + 3)) == Verdict.DIFFERS
    assert worst(broker(OLDEST_BROKERS, OLDEST_BROKERS)) == Verdict.WORKS


def test_other_features() -> None:
    assert worst(broker(HIGHEST, group_version=1, share_version=2)) == Verdict.WORKS
    assert worst(broker(HIGHEST, share_version=3)) == Verdict.BLOCKS
    assert worst(broker(HIGHEST, cloud_version=1)) == Verdict.BLOCKS


def test_the_broker_that_knows_most_decides() -> None:
    late = BrokerFeatures({"metadata.version": (LOWEST, HIGHEST)}, {"metadata.version": HIGHEST + 1}, 200)
    assert worst(broker(HIGHEST), late) == Verdict.BLOCKS


def test_no_broker_answers() -> None:
    assert verdicts() == {}


def test_the_page_has_the_window() -> None:
    text = PAGE.read_text()
    assert [row for row in window() if f"| `{row.feature}` | {row.lowest} | {row.highest} |" not in text] == []
