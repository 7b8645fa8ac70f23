"""Topics: create, grow, delete."""

from __future__ import annotations

from pathlib import Path

from starlette.testclient import TestClient

import barnabas
from barnabas.client.admin import Admin, ConfigResource, ResourceType, TopicMetadata, result
from barnabas.protocol.errors import KafkaError
from tests.console.forms import carry_out, change, lines, preview
from tests.console.reading import html, printed


def partitions(admin: Admin, name: str) -> int:
    found: TopicMetadata = result(admin.describe_topics([name])[name])
    return len(found.partitions)


def test_a_topic_is_created_as_the_command_does(changed: barnabas.Broker, writer: TestClient, admin: Admin) -> None:
    fields = {"name": "made", "partitions": "3", "configs": "retention.ms=60000\ncleanup.policy=compact"}
    shown = preview(writer, "topic-create", **fields)
    words = ("topic", "create", "made", "-p", "3", "-c", "retention.ms=60000", "-d")
    assert shown.rows == printed(changed.bootstrap_servers, *words)
    assert shown.data["destroys"] is None
    assert isinstance(admin.describe_topics(["made"])["made"], KafkaError)
    done = carry_out(writer, shown)
    assert done.rows == [{"topic": "made", "status": "created", "partitions": 3, "replicas": 1}]
    resource = ConfigResource(ResourceType.TOPIC, "made")
    configs = {each.name: each.value for each in result(admin.describe_configs([resource])[resource])}
    assert (configs["retention.ms"], configs["cleanup.policy"]) == ("60000", "compact")
    assert "/change/topic-delete?name=made" in html(writer, "topic", name="made")


def test_a_topic_that_cannot_be_is_a_sentence(writer: TestClient) -> None:
    change(writer, "topic-create", name="there")
    for name, sentence in (
        ("<script>", "'<script>' is not a valid topic name (use letters"),
        ("x" * 300, "is longer than the max allowed length 249"),
        ("..", "'..' is not allowed"),
        ("there", "Topic 'there' already exists."),
    ):
        refused = preview(writer, "topic-create", name=name)
        assert (refused.status, "fields" in refused.data) == (409, True)
        assert sentence in refused.error
    assert "no.such" in preview(writer, "topic-create", name="a", configs="no.such=1").error
    assert preview(writer, "topic-create", name="a", replication_factor="3").status == 409


def test_growth_has_the_warnings_of_the_command(writer: TestClient, admin: Admin) -> None:
    change(writer, "topic-create", name="growing", partitions="2")
    shown = preview(writer, "topic-grow", name="growing", partitions="4")
    assert shown.rows == [{"topic": "growing", "status": "would be grown from 2 to 4 partitions"}]
    first, second = shown.data["notes"]
    assert first.startswith("keys map to other partitions")
    assert second == "`barnabas topic grow growing -p 4 --ordered` lets groups read each key in order"
    assert carry_out(writer, shown).status == 200
    assert partitions(admin, "growing") == 4
    assert preview(writer, "topic-grow", name="growing", partitions="3").status == 409


def test_a_topic_is_deleted_only_by_its_name(writer: TestClient, admin: Admin, audit: Path) -> None:
    change(writer, "topic-create", name="doomed")
    shown = preview(writer, "topic-delete", name="doomed")
    assert (shown.data["destroys"], shown.data["asks"]) == ("doomed", ["typed"])
    assert shown.data["topic"][0]["records"] == 0
    refused = carry_out(writer, shown, typed="doome")
    assert (refused.status, refused.error) == (400, "The name that was typed is not doomed. Nothing was changed.")
    assert partitions(admin, "doomed") == 1
    assert carry_out(writer, refused._replace(status=200)).rows == [{"topic": "doomed", "status": "deleted"}]
    assert isinstance(admin.describe_topics(["doomed"])["doomed"], KafkaError)
    begun, done = lines(audit)[-2:]
    assert (begun["result"], done["result"], begun["id"] == done["id"]) == ("begun", "done", True)
    assert (done["change"], done["on"], done["who"]) == ("topic-delete", "topic doomed", None)
    assert begun["what"] == {"name": "doomed"}


def test_another_topic_of_the_same_name_is_not_deleted(writer: TestClient, admin: Admin) -> None:
    change(writer, "topic-create", name="again")
    shown = preview(writer, "topic-delete", name="again")
    admin.delete_topics(["again"])
    missing = carry_out(writer, shown)
    assert (missing.status, missing.error.startswith("Topic again does not exist")) == (409, True)
    change(writer, "topic-create", name="again")
    refused = carry_out(writer, shown)
    assert (refused.status, "has changed since the preview" in refused.error) == (409, True)
    assert partitions(admin, "again") == 1


def test_an_internal_topic_needs_a_tick(writer: TestClient) -> None:
    change(writer, "topic-create", name="__barnabas_owners")
    assert "is internal" in preview(writer, "topic-delete", name="__barnabas_owners").error
    assert preview(writer, "topic-delete", name="__barnabas_owners", internal="1").status == 200
