"""`barnabas adopt check` against Apache Kafka: a healthy node, what differs on it, a directory of another cluster; and against barnabas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import ApacheKafka
from click.testing import CliRunner

import barnabas
from barnabas.client.admin import Admin, ConfigChange, ConfigResource, NewTopic, ResourceType, result
from barnabas.log.meta_properties import META_PROPERTIES, MetaProperties
from barnabas.main import command_group
from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]


def check(bootstrap: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    words = ["adopt", "check", "-b", bootstrap, "-o", "json", *arguments]
    found = CliRunner().invoke(command_group(), words, prog_name="barnabas")
    return found.exit_code, json.loads(found.stdout)


def whats(data: dict[str, Any], verdict: str) -> set[str]:
    return {each["what"] for each in data["findings"] if each["verdict"] == verdict}


def until_known(admin: Admin, resource: ConfigResource, wanted: dict[str, str]) -> None:
    """Wait until the broker that is asked describes these values."""

    def is_known() -> bool:
        found = result(admin.describe_configs([resource], names=list(wanted))[resource])
        return {each.name: each.value for each in found} == wanted

    wait_for(f"the settings of {resource.name}", is_known)


def test_a_healthy_node_of_apache_kafka(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path, heap="400m", settings={"num.io.threads": "9"}) as kafka:
        with Admin(kafka.bootstrap_servers) as admin:
            of_topic = {"preallocate": "true", "retention.ms": "3600000"}
            result(admin.create_topics([NewTopic("orders", 3, configs=of_topic)])["orders"])
            broker = ConfigResource(ResourceType.BROKER, "1")
            assert admin.alter_configs({broker: [ConfigChange("num.network.threads", "4")]})[broker] is None
            # The controller has them; the broker knows them when it has read so far in the metadata log.
            until_known(admin, broker, {"num.network.threads": "4"})
            until_known(admin, ConfigResource(ResourceType.TOPIC, "orders"), of_topic)
        file = str(tmp_path / "server.properties")
        code, data = check(kafka.bootstrap_servers, "--config", file)
        assert (code, whats(data, "blocks"), data["not_looked_at"]) == (0, set(), [])
        assert data["looked_at"]["file"] == data["looked_at"]["broker"] == 1
        assert data["looked_at"]["partition"] == 3
        differing = {(tuple(each["where"]), each["what"]) for each in data["findings"] if each["verdict"] == "differs"}
        line = next(n for n, text in enumerate(Path(file).read_text().splitlines(), 1) if text.startswith("num.io"))
        assert {
            ((f"{file}, line {line}",), "num.io.threads has no effect"),
            (("broker 1",), "num.network.threads has no effect"),
            (("topic orders",), "preallocate has no effect"),
        } <= differing
        assert {
            "barnabas starts with it, as node 1 (broker,controller)",
            "it is the directory of node 1 of this cluster",
        } <= (whats(data, "works"))

        foreign = tmp_path / "foreign"
        foreign.mkdir()
        (foreign / META_PROPERTIES).write_bytes(MetaProperties("QwvTT5vyS0-Cb4-Yq9sNmQ", 1).encode())
        other = tmp_path / "other.properties"
        other.write_text(Path(file).read_text().replace(f"log.dirs={kafka.data_dir}", f"log.dirs={foreign}"))
        code, data = check(kafka.bootstrap_servers, "--config", str(other))
        assert code == 1
        assert any(
            what.startswith("it is a directory of another cluster: QwvTT5vyS0") for what in whats(data, "blocks")
        )


def test_a_broker_that_is_barnabas_already() -> None:
    with barnabas.Broker() as broker:
        code, data = check(broker.bootstrap_servers)
    assert code == 0
    assert "it is barnabas already" in whats(data, "works")
    assert [each["what"] for each in data["not_looked_at"]] == ["server.properties of node 1"]
