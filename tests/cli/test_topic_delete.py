"""`topic delete`: what is deleted, and that an internal topic takes a word more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.topic_delete import delete
from barnabas.client.admin import Admin, CommittedOffset, NewTopic, TopicPartition

OFFSETS = "__consumer_offsets"


@pytest.fixture
def address() -> Iterator[str]:
    """A broker with topics orders and returns, and an internal one with the offset of a group."""
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        broker.create_topic("orders")
        broker.create_topic("returns")
        admin.alter_group_offsets("shop", {TopicPartition("orders", 0): CommittedOffset(0)})
        yield broker.bootstrap_servers


def run(address: str, *arguments: str) -> Result:
    return CliRunner().invoke(delete, [*arguments, "-b", address], prog_name="barnabas topic delete")


def names(address: str) -> list[str]:
    with Admin(address) as admin:
        return [each.name for each in admin.list_topics(internal=True)]


def test_an_internal_topic_stays_and_so_do_those_named_with_it(address: str) -> None:
    for arguments in (["orders", OFFSETS], [OFFSETS, "--dry-run"]):
        kept = run(address, *arguments)
        assert (kept.exit_code, kept.stdout) == (1, "")
        assert kept.stderr == (
            f"error: topic {OFFSETS} is internal, and holds the committed offsets of every group"
            " (--internal deletes it all the same)\n"
        )
    assert names(address) == [OFFSETS, "orders", "returns"]


def test_a_topic_of_our_own_tools_is_internal(address: str) -> None:
    with Admin(address) as admin:
        admin.create_topics([NewTopic("__barnabas_cuts", 1)])
        assert [each.name for each in admin.list_topics()] == ["orders", "returns"]
    kept = run(address, "__barnabas_cuts")
    assert kept.stderr.startswith("error: topic __barnabas_cuts is internal, and holds the named cuts (--internal")
    assert run(address, "__barnabas_cuts", "--internal").exit_code == 0
    assert names(address) == [OFFSETS, "orders", "returns"]


def test_internal_deletes_it(address: str) -> None:
    assert run(address, OFFSETS, "--internal").exit_code == 0
    assert names(address) == ["orders", "returns"]


def test_a_regular_expression_finds_internal_topics_only_with_internal(address: str) -> None:
    def matched(*arguments: str) -> list[str]:
        lines = run(address, "-r", ".*", "--dry-run", *arguments).stdout.splitlines()
        return [line.split()[0] for line in lines[1:]]

    assert matched() == ["orders", "returns"]
    assert matched("--internal") == [OFFSETS, "orders", "returns"]
    assert run(address, "-r", ".*").exit_code == 0
    assert names(address) == [OFFSETS]
