"""The card's bookkeeping and its page: what counts as passed, when the page is whole, what it says of a failure."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.conform.card.clients import CLIENTS
from tests.conform.card.programs import PROGRAMS
from tests.conform.card.results import OURS, THEIRS, Card, KeptCells, expected
from tests.conform.card.scenarios import SCENARIOS, shows


def full_card() -> Card:
    card = Card({}, "9.9")
    for client in CLIENTS:
        card.says(client.name, f"{client.name} 1.0")
        for scenario in SCENARIOS:
            if scenario not in client.without:
                card.record(client.name, scenario, {OURS: ["same"], THEIRS: ["same"]})
    for program in PROGRAMS:
        card.says(program.name, program.version)
        for scenario in program.scenarios:
            for broker in (OURS, THEIRS):
                card.step(program.name, scenario, broker, None)
    return card


def cell(card: Card, name: str, scenario: str) -> dict[str, Any]:
    found: dict[str, Any] = card.rows[name]["cells"][scenario]
    return found


def test_a_page_of_passes_has_every_row_and_no_failures() -> None:
    card = full_card()
    assert card.missing() == []
    page = card.page()
    for one in (*CLIENTS, *PROGRAMS):
        assert f"| {one.name} |" in page
    for scenario in SCENARIOS:
        assert f"**{scenario}**: {shows(scenario)}" in page
    assert "✗ |" not in page
    assert "What failed" not in page


def test_the_same_results_make_the_same_page() -> None:
    assert full_card().page() == full_card().page()


def test_another_transcript_than_on_apache_kafka_is_a_failure_of_ours_only() -> None:
    card = full_card()
    card.record(CLIENTS[0].name, "codecs", {OURS: ["offset 1"], THEIRS: ["offset 2"]})
    assert cell(card, CLIENTS[0].name, "codecs") == {OURS: "saw something else than on Apache Kafka", THEIRS: "passed"}
    scenarios = len(expected()[CLIENTS[0].name])
    assert f"| {scenarios - 1} of {scenarios} | {scenarios} of {scenarios} |" in card.page()
    assert f"- **{CLIENTS[0].name}**, codecs, on barnabas: saw something else" in card.page()


def test_an_error_is_kept_in_its_first_line() -> None:
    card = full_card()
    card.record(CLIENTS[0].name, "codecs", {OURS: ValueError("no such thing\nand a trace"), THEIRS: ["x"]})
    assert cell(card, CLIENTS[0].name, "codecs")[OURS] == "no such thing"


def test_a_failure_on_both_is_not_held_against_ours_alone() -> None:
    card = full_card()
    card.record(CLIENTS[0].name, "codecs", {OURS: ValueError("a"), THEIRS: ValueError("b")})
    assert "✗ (on both)" in card.page()


def test_a_scenario_of_several_tests_fails_with_one_of_them_and_recovers_in_the_next_run() -> None:
    card = full_card()
    program = PROGRAMS[0]
    scenario = next(iter(program.scenarios))
    card.step(program.name, scenario, OURS, "one test failed")
    card.step(program.name, scenario, OURS, None)
    assert cell(card, program.name, scenario)[OURS] == "one test failed"
    later = Card(card.rows, "9.9")
    later.step(program.name, scenario, OURS, None)
    assert cell(later, program.name, scenario)[OURS] == "passed"


def test_a_missing_cell_is_named() -> None:
    card = full_card()
    del card.rows[CLIENTS[0].name]["cells"]["codecs"][THEIRS]
    assert card.missing() == [f"{CLIENTS[0].name}: codecs"]


def test_a_client_that_cannot_be_had_is_a_row_that_says_so() -> None:
    card = full_card()
    card.unavailable(CLIENTS[0].name, "no such tool on this machine")
    assert card.missing() == []
    assert f"| {CLIENTS[0].name} | not to be had: no such tool on this machine |" in card.page()


def test_whatever_a_client_leaves_out_is_a_scenario() -> None:
    for client in CLIENTS:
        assert client.without.keys() <= SCENARIOS.keys()


def test_two_runs_side_by_side_keep_what_both_found() -> None:
    earlier = full_card().rows
    first, second = Card(full_card().rows, "9.9"), Card(full_card().rows, "9.9")
    name = CLIENTS[0].name
    first.record(name, "codecs", {OURS: ValueError("first"), THEIRS: ["x"]})
    second.record(name, "batches", {OURS: ValueError("second"), THEIRS: ["x"]})
    kept = second.merged_with(first.merged_with(earlier))
    assert kept[name]["cells"]["codecs"][OURS] == "first"
    assert kept[name]["cells"]["batches"][OURS] == "second"
    assert kept[CLIENTS[1].name] == earlier[CLIENTS[1].name]


def test_many_runs_at_once_lose_no_cell(tmp_path: Path) -> None:
    def run(scenario: str) -> None:
        card = Card(KeptCells(tmp_path).read(), "9.9")
        card.says(CLIENTS[0].name, "one 1.0")
        card.record(CLIENTS[0].name, scenario, {OURS: ["same"], THEIRS: ["same"]})
        for _ in range(5):
            KeptCells(tmp_path).merge(card)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, SCENARIOS))
    assert KeptCells(tmp_path).read()[CLIENTS[0].name]["cells"].keys() == SCENARIOS.keys()
