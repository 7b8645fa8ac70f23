"""How refusals of internal topics are remembered and told."""

from __future__ import annotations

from barnabas.api.serving import streams_internal_topics as topics
from barnabas.protocol.messages import StreamsGroupHeartbeatResponse


def test_a_refusal_is_remembered_for_a_while() -> None:
    known: dict[str, tuple[str, int]] = {}
    topics._remember(known, "a", "no", 1_000)
    assert topics._refused(known, ["a", "b"], 999) == {"a": "no"}
    assert topics._refused(known, ["a"], 1_000) == {}
    assert known == {}


def test_the_oldest_of_too_many_refusals_is_forgotten() -> None:
    known: dict[str, tuple[str, int]] = {}
    for index in range(topics._REFUSALS_KEPT + 2):
        topics._remember(known, f"t{index}", "no", 1)
    topics._remember(known, "t2", "still no", 2)
    assert len(known) == topics._REFUSALS_KEPT
    assert next(iter(known)) == "t3"


def test_three_reasons_are_told() -> None:
    status = StreamsGroupHeartbeatResponse.Status(status_code=3, status_detail="Internal topics are missing: a")
    other = StreamsGroupHeartbeatResponse.Status(status_code=5, status_detail="later")
    response = StreamsGroupHeartbeatResponse(status=[other, status])
    topics._tell(response, {name: f"no {name}" for name in "abcd"})
    assert (other.status_detail, status.status_detail) == (
        "later",
        "Internal topics are missing: a; Creation failed: a (no a), b (no b), c (no c) and 1 more.",
    )
