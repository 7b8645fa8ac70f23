"""Settings of a topic, a group and a broker."""

from __future__ import annotations

from pathlib import Path

from starlette.testclient import TestClient

import barnabas
from barnabas.client.admin import Admin, ConfigResource, ResourceType, result
from tests.console.forms import carry_out, change, lines, preview
from tests.console.reading import printed

SECRET = "listener.name.other.ssl.key.password"


def value(admin: Admin, kind: ResourceType, name: str, key: str) -> str | None:
    resource = ConfigResource(kind, name)
    return {each.name: each.value for each in result(admin.describe_configs([resource])[resource])}[key]


def test_a_topic(changed: barnabas.Broker, writer: TestClient, admin: Admin) -> None:
    change(writer, "topic-create", name="altered", configs="max.message.bytes=5000")
    shown = preview(writer, "topic-settings", name="altered", set="compression.type=lz4", delete="max.message.bytes")
    words = ("config", "alter", "topic", "altered", "-s", "compression.type=lz4", "--delete", "max.message.bytes", "-d")
    assert shown.rows == printed(changed.bootstrap_servers, *words)
    assert shown.data["configs"] == [
        {"key": "compression.type", "value": "producer", "source": "DEFAULT_CONFIG", "new_value": "lz4"},
        {"key": "max.message.bytes", "value": "5000", "source": "DYNAMIC_TOPIC_CONFIG", "new_value": "(the default)"},
    ]
    assert shown.data["destroys"] is None
    assert carry_out(writer, shown).status == 200
    assert value(admin, ResourceType.TOPIC, "altered", "compression.type") == "lz4"


def test_what_deletes_records_asks_for_the_name(writer: TestClient) -> None:
    change(writer, "topic-create", name="kept")
    shown = preview(writer, "topic-settings", name="kept", set="retention.ms=1000")
    assert shown.data["destroys"] == "kept"
    assert shown.data["notes"] == ["the topic may lose the records that these settings do not keep"]


def test_a_setting_that_somebody_else_changed_meanwhile(writer: TestClient) -> None:
    change(writer, "topic-create", name="shared")
    shown = preview(writer, "topic-settings", name="shared", set="segment.ms=100000")
    change(writer, "topic-settings", name="shared", set="segment.ms=200000")
    assert "has changed since the preview" in carry_out(writer, shown).error


def test_a_broker_and_its_secrets(writer: TestClient, admin: Admin, audit: Path) -> None:
    broker = str(admin.describe_cluster().brokers[0].id)
    shown = preview(writer, "broker-settings", name=broker, set=f"log.cleaner.threads=2\n{SECRET}=hunter2")
    assert shown.status == 200, shown.error
    assert [each["new_value"] for each in shown.data["configs"]] == ["2", "(hidden)"]
    carry_out(writer, shown)
    assert value(admin, ResourceType.BROKER, broker, "log.cleaner.threads") == "2"
    assert "hunter2" not in audit.read_text()
    assert lines(audit)[-2]["configs"] == shown.data["configs"]
    assert "is not a setting of Kafka's brokers." in preview(writer, "broker-settings", name="0", set="no.such=1").error
    assert "is named by its id" in preview(writer, "broker-settings", name="<b>", set="a=1").error


def test_what_is_not_there(writer: TestClient) -> None:
    assert "Topic absent does not exist" in preview(writer, "topic-settings", name="absent", set="retention.ms=1").error
    assert "Group absent does not exist" in preview(writer, "group-settings", name="absent", set="a=1").error
    assert preview(writer, "topic-settings", name="altered", set="retention.ms=soon").status == 409
    assert preview(writer, "topic-settings", name="altered", set="no.such.setting=1").status == 409
