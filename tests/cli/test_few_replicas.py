"""Which topics one broker stops."""

from __future__ import annotations

import pytest

from barnabas.cli.few_replicas import InSync, warning_of_few


@pytest.mark.parametrize(
    ("replicas", "min_isr", "warns"),
    [(2, "2", True), (3, "2", False), (1, "1", False), (1, "2", False), (2, "3", True), (2, None, False)],
)
def test_a_topic_that_one_broker_less_stops_is_warned_of(replicas: int, min_isr: str | None, warns: bool) -> None:
    warning = "warning: topic t has no more replicas than min.insync.replicas: acks=all is rejected while one of the brokers is down"
    assert warning_of_few([InSync("t", replicas, min_isr)]) == (warning if warns else None)


def test_several_topics_are_one_warning() -> None:
    found = warning_of_few([InSync("a", 2, "2"), InSync("ok", 3, "2"), InSync("b", 2, "2")])
    assert (found or "").startswith("warning: topics a, b have no more replicas than min.insync.replicas")
