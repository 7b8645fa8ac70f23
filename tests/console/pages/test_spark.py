"""Spark queries and sinks."""

from __future__ import annotations

from starlette.testclient import TestClient

import barnabas
from barnabas.client.admin import Admin, CommittedOffset, TopicPartition
from tests.console.reading import html, printed, twin

MARK = "spark at=2026-11-18T11:06:39.000Z"


def test_the_twin_is_what_the_commands_print(changed: barnabas.Broker, writer: TestClient, admin: Admin) -> None:
    page = html(writer, "spark")
    assert "No query commits its progress: set the source" in page
    assert "No transaction of a Spark sink is open." in page
    changed.create_topic("sparked", partitions=1)
    admin.alter_group_offsets("query", {TopicPartition("sparked", 0): CommittedOffset(0, MARK)})
    found = twin(writer, "spark")
    assert found["queries"] == printed(changed.bootstrap_servers, "spark", "status")
    assert (found["queries"][0]["group"], found["queries"][0]["lag"]) == ("query", 0)
    assert found["orphans"] == printed(changed.bootstrap_servers, "spark", "orphans")
