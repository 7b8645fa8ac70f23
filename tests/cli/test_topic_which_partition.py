"""`topic which-partition`: the partition of a key for each client library, without a broker."""

from __future__ import annotations

import json

from click.testing import CliRunner

from barnabas.cli.topic_which_partition import which_partition


def lines(*arguments: str) -> list[str]:
    return CliRunner().invoke(which_partition, ["orders", "customer-42", "-p", "6", *arguments]).stdout.splitlines()


def test_each_row_says_whose_default_the_partitioner_is() -> None:
    assert lines()[0].split() == ["KEY", "PARTITION", "PARTITIONER", "CLIENTS"]
    assert lines()[3].split("  ")[-1].strip() == "default of sarama"
    assert lines("--partitioner", "murmur2")[1].split()[-1] == "-"


def test_json_has_the_clients_alone() -> None:
    found = json.loads("\n".join(lines("--output", "json")))
    assert found[2] == {"key": "customer-42", "partition": 0, "partitioner": "fnv1a_random", "default_of": "sarama"}
