"""The page's section about TLS and logins: what counts, and what a run of one way leaves as it is."""

from __future__ import annotations

from pathlib import Path

from tests.conform.card.clients import CLIENTS
from tests.conform.card.results import OURS, THEIRS, Card
from tests.conform.card.secured_results import BOTH, HEADING, Found, of_card, read, section, with_section, write

FIRST, SECOND = CLIENTS[0].name, CLIENTS[1].name
DAY = "2030-01-31"


def test_what_both_brokers_played_counts() -> None:
    card = Card({}, "9.9")
    card.record(FIRST, "codecs", {OURS: ["same"], THEIRS: ["same"]})
    card.record(FIRST, "batches", {OURS: ["one"], THEIRS: ["other"]})
    card.record(FIRST, "times", {OURS: ["alone"]})
    why = f"batches, on {OURS}: saw something else than on Apache Kafka"
    assert of_card(card, "SSL", DAY) == [Found(FIRST, "SSL", BOTH, 1, 2, DAY, why)]


def test_a_client_that_never_met_apache_kafka_says_so() -> None:
    card = Card({}, "9.9")
    card.record(FIRST, "times", {OURS: ["alone"]})
    (found,) = of_card(card, "SSL", DAY)
    assert found == Found(FIRST, "SSL", OURS, 1, 1, DAY)
    assert f"1 of 1 (there are 19) on barnabas alone, {DAY}" in section({(FIRST, "SSL"): found})


def test_a_client_of_an_earlier_run_keeps_its_day() -> None:
    card = Card({SECOND: {"version": "1", "cells": {"codecs": {OURS: "passed", THEIRS: "passed"}}}}, "9.9")
    card.record(FIRST, "codecs", {OURS: ["same"], THEIRS: ["same"]})
    assert [found.client for found in of_card(card, "SSL", DAY)] == [FIRST]


def test_a_client_that_cannot_be_had_says_why() -> None:
    card = Card({}, "9.9")
    card.unavailable(FIRST, "no such tool")
    (found,) = of_card(card, "SSL", DAY)
    text = section({(FIRST, "SSL"): found})
    assert f"| {FIRST} | · | not played |" in text
    assert f"- **{FIRST}**, SSL: cannot be installed: no such tool" in text


def test_what_was_found_is_kept_in_the_order_of_the_page(tmp_path: Path) -> None:
    file = tmp_path / "secured.tsv"
    rows = [
        Found(SECOND, "SSL", OURS, 1, 1, DAY),
        Found(FIRST, "SASL_SSL/PLAIN", BOTH, 2, 3, DAY, "why"),
        Found(FIRST, "SSL", BOTH, 3, 3, DAY),
    ]
    write(rows, file)
    assert list(read(file).values()) == [rows[2], rows[1], rows[0]]


def test_the_section_takes_the_place_of_the_one_before() -> None:
    page = with_section("# Page\n\ntext\n", {})
    later = with_section(page, {(FIRST, "SSL"): Found(FIRST, "SSL", BOTH, 3, 3, DAY)})
    assert later.startswith("# Page\n\ntext\n" + HEADING)
    assert later.count(HEADING) == 1
    assert f"3 of 3 (there are 19), {DAY}" in later
