"""What `topic describe` and `group describe` say of ordered growth, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

import barnabas
from barnabas.cli.failure import Failure
from barnabas.cli.group import group
from barnabas.cli.growth_words import growth_of, growth_words
from barnabas.cli.topic import topic
from barnabas.client.admin import Admin, CommittedOffset, NewTopic, TopicPartition
from barnabas.client.topic_growth import store_growth
from barnabas.protocol.ordered_growth import Generation


@pytest.fixture
def broker() -> Iterator[Any]:
    with barnabas.Broker() as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 2, 1), NewTopic("payments", 1, 1)])
            admin.alter_group_offsets("billing", {TopicPartition("orders", 0): CommittedOffset(80)})
        yield running


def shown(command: Any, broker: Any, *arguments: str) -> Any:
    result = CliRunner().invoke(command, [*arguments, "-b", broker.bootstrap_servers, "-o", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def grown(broker: Any, growth: Generation) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        store_growth(admin.cluster, "orders", [growth])
        admin.create_partitions({"orders": growth.after})


def test_a_topic_says_how_far_its_growth_is(broker: Any) -> None:
    grown(broker, Generation(2, 4, 5))
    described = shown(topic, broker, "describe", "orders", "payments", "-s")
    assert [each["summary"].get("ordered_growth") for each in described] == [
        "2 to 4 partitions, not sealed: `barnabas topic grow orders -p 4 --ordered` goes on",
        None,
    ]
    assert growth_words("orders", [Generation(2, 4, 5, (1, 2))]) == "2 to 4 partitions, sealed"


def test_a_group_says_what_it_waits_for(broker: Any) -> None:
    assert "held" not in shown(group, broker, "describe", "billing")[0]
    grown(broker, Generation(2, 4, 5, (100, 50)))
    held = shown(group, broker, "describe", "billing")[0]["held"]
    assert held == [
        {"topic": "orders", "partition": 2, "waits": "waits at the fence of orders-0 (committed 80 of 100)"},
        {"topic": "orders", "partition": 3, "waits": "waits at the fence of orders-1 (committed nothing of 50)"},
    ]
    with Admin(broker.bootstrap_servers) as admin:
        store_growth(admin.cluster, "orders", [Generation(2, 4, 5)])
    held = shown(group, broker, "describe", "billing")[0]["held"]
    assert [each["waits"] for each in held] == ["growth not sealed"] * 2
    text = CliRunner().invoke(group, ["describe", "billing", "-b", broker.bootstrap_servers]).stdout
    assert "growth not sealed" in text


def test_a_setting_that_cannot_be_read_is_one_sentence(monkeypatch: pytest.MonkeyPatch, broker: Any) -> None:
    def newer(*_: object) -> None:
        raise ValueError("2->4 is new")

    monkeypatch.setattr(Admin, "list_growth", newer)
    with (
        Admin(broker.bootstrap_servers) as admin,
        pytest.raises(Failure, match="of a topic cannot be read by this release: 2->4 is new"),
    ):
        growth_of(admin, ["orders"])
