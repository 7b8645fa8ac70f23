"""The workload and the checker together: nothing on a right broker, and every planted bug found, whatever the seed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.verify.verdict import check
from tests.verify import model


@settings(max_examples=30, deadline=None)
@given(st.integers(min_value=0))
def test_a_right_broker_has_no_anomaly(seed: int) -> None:
    history = model.run(seed, steps=1500)
    verdict = check(history)
    assert verdict.valid, [each.message for each in verdict.anomalies[:3]]
    assert verdict.statistics["acknowledged"] > 100  # it did something


def test_the_workload_meets_what_kafka_permits() -> None:
    """Without interleaved transactions nothing could go wrong, and nothing would be shown."""
    assert check(model.run(1)).allowed_counts().keys() >= {"int-send-skip", "G0", "G1c-ww"}


BUGS = {
    model.DropsARecord: {"unseen", "torn-transaction"},
    model.CommitsAborted: {"aborted-read"},
    model.AbortsCommitted: {"lost-write", "unseen"},
    model.ReadsUncommitted: {"aborted-read", "precommitted-read", "G1c"},
    model.LosesTheFilter: {"aborted-read"},
    model.AppendsTwice: {"duplicate"},
    model.TearsATransaction: {"torn-transaction", "lost-write"},
    model.Truncates: {"inconsistent-offset", "unseen"},
    model.SkipsARecord: {"int-poll-skip", "poll-skip"},
    model.GoesBack: {"nonmonotonic-poll"},
    model.Reorders: {"inconsistent-offset", "duplicate"},
    model.ForgetsOffsets: {"consumed-twice"},
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found_with_every_seed(bug: type[model.Broker]) -> None:
    found: set[str] = set()
    for seed in range(5):
        counts = check(model.run(seed, bug)).counts()
        assert counts, f"seed {seed} did not show it"
        found |= counts.keys()
    assert found >= BUGS[bug]
