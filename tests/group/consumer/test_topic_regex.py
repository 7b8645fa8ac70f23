"""Expressions are RE2's, and match whole names."""

from __future__ import annotations

import pytest

from barnabas.group.consumer.records import ResolvedRegularExpression
from barnabas.group.consumer.topic_regex import check_regex, resolve_regexes
from barnabas.protocol.errors import ErrorCode, KafkaError


def resolved(regex: str, *topics: str) -> set[str]:
    return set(resolve_regexes([regex], topics, version=3, now_ms=5)[regex].topics)


def test_the_whole_name_has_to_match() -> None:
    assert resolved("t", "t", "tt", "at") == {"t"}
    assert resolved("t|u", "t", "u", "tu") == {"t", "u"}
    assert resolved(r"\pL+", "abc", "a1") == {"abc"}


def test_version_and_time_are_kept() -> None:
    assert resolve_regexes(["a"], ["a"], version=3, now_ms=5) == {
        "a": ResolvedRegularExpression(frozenset({"a"}), 3, 5)
    }


@pytest.mark.parametrize("regex", ["(", "(?=a)", r"(a)\1", "a{2,1}", "*"])
def test_what_re2_does_not_know_is_refused_and_matches_nothing(regex: str) -> None:
    with pytest.raises(KafkaError) as raised:
        check_regex(regex)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert regex in raised.value.message
    assert resolved(regex, "a", "aa", "(") == set()


def test_a_pattern_that_would_hold_a_backtracking_matcher_does_not() -> None:
    check_regex("(a+)+b")
    assert resolved("(a+)+b", "a" * 249) == set()
