"""`barnabas topic apply` on both brokers; another client reads what the topics have become."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic, ResourceType

from tests.cli.test_commands import run
from tests.conform.brokers import BarnabasProcess, KafkaProcess
from tests.conform.card.results import OURS, THEIRS

pytestmark = pytest.mark.conform

FILE = """
[defaults]
partitions = 3
replication-factor = 1

[topics.apply-old]
partitions = 4

[topics.apply-old.configs]
min.cleanable.dirty.ratio = 0.250
retention.ms = 3600000

[topics.apply-new.configs]
cleanup.policy = ["compact", "delete"]
segment.bytes = 1048576
preallocate = false
"""


def own(admin: AdminClient, topic: str) -> dict[str, str]:
    (found,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    entries = found.result(30).values()
    return {each.name: each.value for each in entries if each.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}


@pytest.mark.parametrize("name", [OURS, THEIRS])
def test_a_file_on_both_brokers(
    both_brokers: dict[str, BarnabasProcess | KafkaProcess], name: str, tmp_path: Path
) -> None:
    if name not in both_brokers:
        pytest.skip("only the other broker runs")
    bootstrap = both_brokers[name].bootstrap_servers
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("apply-old", 2, 1, config={"cleanup.policy": "compact"})])["apply-old"].result(30)
    path = tmp_path / "topics.toml"
    path.write_text(FILE)

    def exit_code(*options: str) -> int:
        return run("topic", "apply", str(path), "-b", bootstrap, *options).exit_code

    assert [exit_code("--check"), exit_code("--yes"), exit_code("--check")] == [1, 0, 0]
    topics = admin.list_topics(timeout=30).topics
    assert (len(topics["apply-old"].partitions), len(topics["apply-new"].partitions)) == (4, 3)
    assert own(admin, "apply-old") == {"min.cleanable.dirty.ratio": "0.25", "retention.ms": "3600000"}
    assert own(admin, "apply-new") == {
        "cleanup.policy": "compact,delete",
        "segment.bytes": "1048576",
        "preallocate": "false",
    }
    path.write_text(f"{FILE}[topics.apply-third.configs]\nretention.mss = 1\n")
    assert exit_code("--yes") == 1
    path.write_text(FILE.replace("partitions = 4", "partitions = 1"))
    assert exit_code("--yes") == 1
    assert "apply-third" not in admin.list_topics(timeout=30).topics
    for future in admin.delete_topics(["apply-old", "apply-new"]).values():
        future.result(30)
