"""`barnabas plan`: its options, its output, and what it says of a plan that cannot be met."""

import json

import pytest

from tests.cli.test_commands import run


def test_the_sums_of_the_rule_of_the_target_throughput() -> None:
    data = json.loads(run("plan", "--rate", "500MB/s", "--consumers", "10", "-o", "json").stdout)
    assert next(each for each in data["figures"] if each["name"] == "partitions")["value"] == 20
    first = data["rules"]["partitions"][0]
    assert (first["name"], first["kind"], first["low"]) == ("target throughput", "needed", 20)
    assert {each["verdict"] for each in data["rules"]["partitions"]} == {"agrees", "asks for more", "allows it"}
    assert data["shortages"] == []


def test_a_rate_of_records_counts_their_size() -> None:
    data = json.loads(run("plan", "--rate", "1000/s", "--record-size", "2kB", "--growth", "100", "-o", "json").stdout)
    assert data["figures"][0]["value"] == 4e6


def test_the_tables_show_formula_and_source() -> None:
    result = run("plan", "--rate", "100000/s", "--consumer-rate", "10000")
    assert result.exit_code == 0
    assert "100,000/s ÷ 10,000/s a consumer" in result.output
    assert "10 partitions: the rule “consumers' speed” needs the most" in result.output


def test_a_plan_that_cannot_be_met_is_shown_and_fails() -> None:
    result = run("plan", "--rate", "500MB/s", "--nodes", "2", "--retention", "1h", "-o", "json")
    assert result.exit_code == 1
    first = json.loads(result.stdout)["shortages"][0]
    assert first["change"] == "give --nodes 3, or lower --replicas"
    assert "error: the plan cannot be met: replicas needs 3 brokers, and there are 2 (give --nodes 3," in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--rate is missing: write 500MB/s, or 100000/s for records"),
        (("--rate", "500"), "'500' is not a valid rate"),
        (("--rate", "1MB/s", "--record-size", "0"), "'0' is not a valid size"),
        (("--rate", "1MB/s", "--partition-rate", "5"), "'5' is not a valid rate"),
        (("--rate", "1MB/s", "--retention", "week"), "'week' is not a valid duration"),
        (("--rate", "1MB/s", "--retention", "0d"), "'0d' is not above 0"),
    ],
)
def test_a_wrong_option_says_what_to_write(arguments: tuple[str, ...], message: str) -> None:
    result = run("plan", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
