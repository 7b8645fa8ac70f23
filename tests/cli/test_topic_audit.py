"""`topic audit` on a real broker."""

from __future__ import annotations

import json
import time

from click.testing import CliRunner

import barnabas
from barnabas.cli.topic_audit import audit
from barnabas.client.admin import Admin, NewTopic, TopicPartition
from barnabas.client.group_offsets import CommittedOffset
from barnabas.client.partition_records import append_batch
from barnabas.records.builder import build_batch

HOUR_MS = 3_600_000


def test_what_may_be_left_over_is_listed_and_nothing_else() -> None:
    now_ms = time.time_ns() // 1_000_000
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 2, 1) for name in ("busy", "idle", "half", "unused")])
        for name, partitions, age_ms in (("busy", (0, 1), 0), ("idle", (0, 1), 3 * HOUR_MS), ("half", (1,), HOUR_MS)):
            for partition in partitions:
                batch = build_batch([(now_ms - age_ms, None, b"v", ())])
                append_batch(admin.cluster, TopicPartition(name, partition), batch)
        for each in admin.list_topics():
            if each.name != "half":
                admin.set_owner(each, "shop", now_ms=now_ms)
        admin.alter_group_offsets("left", {TopicPartition("busy", 0): CommittedOffset(1)})
        result = CliRunner().invoke(audit, ["--idle", "2h", "-b", broker.bootstrap_servers, "-o", "json"])
    assert result.exit_code == 0, result.output
    findings = [(each["kind"], each["name"], each["finding"].split(" of 2")[0]) for each in json.loads(result.stdout)]
    assert findings == [
        ("topic", "half", "it has no owner"),
        ("topic", "half", "1 partition without records: half-0"),
        ("topic", "idle", "its last record is"),
        ("topic", "unused", "it has no records"),
        ("group", "left", "it has no members, and offsets of 1 partition"),
    ]
