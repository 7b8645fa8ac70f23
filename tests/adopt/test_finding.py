"""Findings: the worst first, and once for several places."""

from __future__ import annotations

from barnabas.adopt.finding import Finding, Verdict, blocks, differs, merged, works


def test_the_worst_comes_first_and_the_order_is_otherwise_kept() -> None:
    found = [works("a", "one"), differs("a", "two", "do"), blocks("a", "three", "do"), works("a", "four")]
    assert [each.what for each in merged(found)] == ["three", "two", "one", "four"]


def test_one_finding_about_several_places() -> None:
    found = merged([works("broker 1", "fine"), works("broker 2", "fine"), works("broker 1", "fine")])
    assert found == [Finding(("broker 1", "broker 2"), "fine", Verdict.WORKS)]


def test_places_stay_apart_if_the_remedies_differ() -> None:
    assert len(merged([blocks("broker 1", "old", "update"), blocks("broker 2", "old", "wait")])) == 2
