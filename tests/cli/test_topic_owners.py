"""The owners of topics in `topic list`, `describe` and `alter`, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

import barnabas
from barnabas.cli.failure import Failure
from barnabas.cli.topic import topic
from barnabas.cli.topic_owners import owners_of
from barnabas.client.admin import Admin, NewTopic
from barnabas.client.compacted_topic import CompactedTopic
from barnabas.client.owners import OWNERS_TOPIC


@pytest.fixture
def broker() -> Iterator[Any]:
    with barnabas.Broker() as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 1, 1), NewTopic("payments", 1, 1)])
        yield running


def shown(broker: Any, *arguments: str) -> Any:
    result = CliRunner().invoke(topic, [*arguments, "-b", broker.bootstrap_servers, "-o", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_list_and_describe_show_an_owner(broker: Any) -> None:
    assert "owner" not in shown(broker, "list")[0], "no topic has one"
    shown(broker, "alter", "orders", "--owner", "shop", "--dry-run")
    assert "owner" not in shown(broker, "list")[0], "a dry run notes nothing"
    assert shown(broker, "alter", "orders", "--owner", "shop") == [{"topic": "orders", "status": "owned by shop"}]
    assert [(each["name"], each["owner"]) for each in shown(broker, "list")] == [("orders", "shop"), ("payments", None)]
    described = shown(broker, "describe", "orders", "payments", "-s")
    assert [each["summary"].get("owner") for each in described] == ["shop", None]
    assert shown(broker, "alter", "orders", "--owner", "") == [{"topic": "orders", "status": "without an owner"}]
    assert "owner" not in shown(broker, "list")[0]


def test_an_owner_of_a_newer_release_is_one_sentence(broker: Any) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        CompactedTopic(admin.cluster, OWNERS_TOPIC).put("orders", b'{"version":2}', 1)
        with pytest.raises(Failure, match="this release is too old to read it"):
            owners_of(admin, admin.list_topics())
