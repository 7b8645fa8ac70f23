"""Removing settings: a name that nobody knows is an error, one that is not set is said to be so."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import barnabas
from barnabas.cli.config import config
from barnabas.cli.topic import topic

UNKNOWN = (
    "error: topic orders: a topic has no setting retention.mss; did you mean retention.ms?"
    " (`barnabas topic configs` lists names and defaults)\n"
)


@pytest.fixture(scope="module")
def address() -> object:
    with barnabas.Broker() as broker:
        broker.create_topic("orders", config={"segment.ms": "60000"})
        yield broker.bootstrap_servers


def said(address: str, *words: str) -> tuple[int, str, str]:
    command = topic if words[0] == "topic" else config
    result = CliRunner().invoke(command, [*words[1:], "-b", address], prog_name=f"barnabas {words[0]}")
    return result.exit_code, result.stdout.rpartition("  ")[2].strip(), result.stderr


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_mistyped_name_is_an_error(address: str, dry: tuple[str, ...]) -> None:
    assert said(address, "topic", "alter", "orders", "--delete-config", "retention.mss", *dry) == (1, "", UNKNOWN)
    assert said(address, "config", "alter", "topic", "orders", "--delete", "retention.mss", *dry) == (1, "", UNKNOWN)
    _, _, error = said(address, "config", "alter", "broker", "--entity-default", "--delete", "log.cleaner.thread", *dry)
    assert error.startswith(
        "error: all brokers: there is no broker setting log.cleaner.thread; did you mean log.cleaner.threads?"
    )


def test_a_setting_that_is_not_set_is_said_to_be_so(address: str) -> None:
    assert said(address, "topic", "alter", "orders", "--delete", "retention.ms")[:2] == (
        0,
        "unchanged; retention.ms was not set",
    )
    words = ["config", "alter", "topic", "orders", "--delete", "retention.ms", "--delete", "segment.ms"]
    assert said(address, *words, "-d")[1] == "would be changed: segment.ms; retention.ms was not set"
    assert said(address, *words)[1] == "changed: segment.ms; retention.ms was not set"


def test_a_part_that_a_list_does_not_have_is_said_to_be_missing(address: str) -> None:
    words = ["config", "alter", "topic", "orders", "--subtract"]
    assert said(address, *words, "cleanup.policy=foo")[1] == "unchanged; cleanup.policy has no foo"
    assert said(address, *words, "cleanup.polic=foo")[2].startswith(
        "error: topic orders: a topic has no setting cleanup.polic; did you mean cleanup.policy?"
    )


def test_a_topic_that_does_not_exist_is_the_brokers_error(address: str) -> None:
    _, _, error = said(address, "config", "alter", "topic", "gone", "--delete", "retention.ms")
    assert error.startswith("error: the topic 'gone' does not exist")
