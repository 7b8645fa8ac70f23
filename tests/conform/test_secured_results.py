"""The page's section about TLS and logins: what counts, and what a run of one way leaves as it is."""

from __future__ import annotations

from pathlib import Path

from tests.conform.card.clients import CLIENTS
from tests.conform.card.results import OURS, PASSED, THEIRS, Card
from tests.conform.card.secured_results import HEADING, Found, of_card, read, renewed, section, with_section, write
from tests.conform.card.security import WAYS

FIRST, SECOND = CLIENTS[0].name, CLIENTS[1].name
TOKEN = "SASL_SSL/SCRAM-SHA-256/token"
DAY = "2030-01-31"


def row_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"| {name} |"))


def kept(*rows: Found) -> dict[tuple[str, str, str], Found]:
    return {(row.client, row.way, row.scenario): row for row in rows}


def test_each_way_has_a_name_of_its_own() -> None:
    assert len({way.name for way in WAYS.values()}) == len(WAYS) == 6


def test_a_scenario_passes_on_both_brokers_or_not_at_all() -> None:
    card = Card({}, "9.9")
    card.record(FIRST, "codecs", {OURS: ["same"], THEIRS: ["same"]})
    card.record(FIRST, "batches", {OURS: ["one"], THEIRS: ["other"]})
    card.record(FIRST, "times", {OURS: ["alone"]})
    why = "saw something else than on Apache Kafka"
    found = of_card(card, "SSL", DAY)
    assert found == [
        Found(FIRST, "SSL", "codecs", PASSED, PASSED, DAY),
        Found(FIRST, "SSL", "batches", why, PASSED, DAY),
        Found(FIRST, "SSL", "times", PASSED, "", DAY),
    ]
    text = section(kept(*found))
    assert row_of(text, FIRST).startswith(f"| {FIRST} | 1 of 3 played, there are 19 | not played |")
    assert f"- **{FIRST}**, SSL, batches, on barnabas: {why}\n" in text
    assert f"- **{FIRST}**, SSL, times, on apache-kafka: not played\n" in text


def test_the_page_says_which_were_not_played() -> None:
    text = section(kept(*(Found(each.name, "SSL", "codecs", PASSED, PASSED, DAY) for each in CLIENTS[1:])))
    assert row_of(text, "codecs").startswith(f"| codecs | 9 of 10; not {FIRST} | not played |")
    assert row_of(text, "batches").startswith("| batches | not played |")


def test_a_client_that_sends_no_token_is_not_asked_to() -> None:
    text = section(kept(Found("franz-go", TOKEN, "codecs", PASSED, PASSED, DAY)))
    assert row_of(text, "aiokafka").endswith("| · |")
    assert row_of(text, "codecs").endswith("| 1 of 3; not Java 4.4, Java 3.9 |")
    assert "- **aiokafka** sends no `tokenauth`" in text


def test_a_run_renews_what_it_played() -> None:
    earlier = kept(
        Found(FIRST, "SSL", "codecs", "broken", PASSED, DAY),
        Found(FIRST, "SSL", "times", PASSED, PASSED, DAY),
        Found(SECOND, "SSL", "", "cannot be installed: no such tool", "", DAY),
    )
    card = Card({}, "9.9")
    card.record(FIRST, "codecs", {OURS: ["same"], THEIRS: ["same"]})
    card.record(SECOND, "codecs", {OURS: ["same"], THEIRS: ["same"]})
    found = renewed(earlier, of_card(card, "SSL", "2031-02-03"))
    assert found == kept(
        Found(FIRST, "SSL", "codecs", PASSED, PASSED, "2031-02-03"),
        Found(FIRST, "SSL", "times", PASSED, PASSED, DAY),
        Found(SECOND, "SSL", "codecs", PASSED, PASSED, "2031-02-03"),
    )


def test_a_client_of_an_earlier_run_keeps_its_day() -> None:
    card = Card({SECOND: {"version": "1", "cells": {"codecs": {OURS: "passed", THEIRS: "passed"}}}}, "9.9")
    card.record(FIRST, "codecs", {OURS: ["same"], THEIRS: ["same"]})
    assert [found.client for found in of_card(card, "SSL", DAY)] == [FIRST]


def test_a_client_that_cannot_be_had_says_why() -> None:
    card = Card({}, "9.9")
    card.unavailable(FIRST, "no such tool")
    text = section(kept(*of_card(card, "SSL", DAY)))
    assert row_of(text, FIRST).startswith(f"| {FIRST} | · | not played |")
    assert f"- **{FIRST}**, SSL: cannot be installed: no such tool" in text


def test_what_was_found_is_kept_in_the_order_of_the_page(tmp_path: Path) -> None:
    file = tmp_path / "secured.tsv"
    rows = [
        Found(SECOND, "SSL", "codecs", PASSED, "", DAY),
        Found(FIRST, "SASL_SSL/PLAIN", "codecs", PASSED, "why", DAY),
        Found(FIRST, "SSL", "batches", PASSED, PASSED, DAY),
        Found(FIRST, "SSL", "codecs", PASSED, PASSED, DAY),
    ]
    write(kept(*rows), file)
    assert list(read(file).values()) == [rows[3], rows[2], rows[1], rows[0]]


def test_the_section_takes_the_place_of_the_one_before() -> None:
    page = with_section("# Page\n\ntext\n", {})
    later = with_section(page, kept(Found(FIRST, "SSL", "codecs", PASSED, PASSED, DAY)))
    assert later.startswith("# Page\n\ntext\n" + HEADING)
    assert later.count(HEADING) == 1
    assert row_of(later, FIRST).startswith(f"| {FIRST} | 1 of 1 played, there are 19 |")
    assert later.endswith(f"\nPlayed from {DAY} to {DAY}.\n")
