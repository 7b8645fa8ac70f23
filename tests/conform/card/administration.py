"""Scenarios of administration and limits: topics, configurations, records, groups, quotas."""

from __future__ import annotations

import time

from tests.conform.card.stage import STEP_SECONDS, Stage, numbered, read, record, send

QUOTA_BYTES_PER_SECOND = 20_000
TRIES = 5


def until(stage: Stage, driver, expected, do: str, **fields) -> None:  # type: ignore[no-untyped-def]
    """Ask until the answer is as expected: a change is in the controller's log before every broker's metadata shows it."""
    deadline = time.monotonic() + STEP_SECONDS
    while True:
        answer = driver(do, **fields)
        if answer == expected:
            stage.transcript.append([do, answer])
            return
        assert time.monotonic() < deadline, f"{do}: {answer} is not {expected}"


def until_served(stage: Stage, driver, topic: str, *, partitions: int) -> None:  # type: ignore[no-untyped-def]
    """Ask until each partition has a leader and all its replicas in sync; of several nodes, any may be one."""
    deadline = time.monotonic() + STEP_SECONDS
    while True:
        found = driver("describe_topic", topic=topic)
        if [each[0] for each in found] == list(range(partitions)) and all(
            leader in in_sync and sorted(in_sync) == sorted(replicas) for _, leader, replicas, in_sync in found
        ):
            stage.transcript.append(["describe_topic", [len(replicas) for _, _, replicas, _ in found]])
            return
        assert time.monotonic() < deadline, f"{topic}: {found} are not {partitions} served partitions"


def topics(stage: Stage) -> None:
    """Topics are created, listed, described, widened and deleted; what makes no sense is refused with Kafka's code."""
    one, two = stage.name("one"), stage.name("two")
    admin = stage.driver()
    admin("create_topic", topic=one, partitions=3, config={"retention.ms": "3600000"})
    admin("create_topic", topic=two, partitions=1, config={})
    until(stage, admin, [one, two], "list_topics", prefix=stage.prefix)
    until_served(stage, admin, one, partitions=3)
    stage.refused(admin, "create_topic", topic=one, partitions=1, config={})
    stage.refused(admin, "create_topic", topic=stage.name("bad"), partitions=1, config={"no.such.setting": "1"})
    stage.refused(admin, "create_topic", topic=stage.name("bad/name"), partitions=1, config={})
    stage.refused(admin, "create_topic", topic=stage.name("none"), partitions=0, config={})
    admin("add_partitions", topic=one, total=5)
    until_served(stage, admin, one, partitions=5)
    stage.refused(admin, "add_partitions", topic=one, total=2)
    admin("delete_topic", topic=two)
    until(stage, admin, [one], "list_topics", prefix=stage.prefix)
    stage.refused(admin, "delete_topic", topic=two)


def configs(stage: Stage) -> None:
    """A topic's settings are read and changed; wrong values are refused."""
    topic = stage.topic("configured", retention_ms="7200000")
    admin = stage.driver()
    names = ["cleanup.policy", "max.message.bytes", "retention.ms"]
    before = {"cleanup.policy": "delete", "max.message.bytes": "1048588", "retention.ms": "7200000"}
    until(stage, admin, before, "describe_config", topic=topic, names=names)
    admin("alter_config", topic=topic, config={"retention.ms": "1000000", "max.message.bytes": "5000"})
    after = before | {"max.message.bytes": "5000", "retention.ms": "1000000"}
    until(stage, admin, after, "describe_config", topic=topic, names=names)
    if "config errors" not in stage.traits:
        stage.refused(admin, "alter_config", topic=topic, config={"retention.ms": "soon"})
        stage.refused(admin, "alter_config", topic=stage.name("missing"), config={"retention.ms": "1"})


def deleted_records(stage: Stage) -> None:
    """Records before an offset are deleted, and readers begin there."""
    topic = stage.topic("trimmed")
    admin = stage.driver()
    send(admin, topic, 0, numbered("kept", 0, 10))
    admin("delete_records", topic=topic, partition=0, offset=7)
    reader = stage.reader(topic)
    found = read(reader, 3)
    assert [row[2] for row in found] == [7, 8, 9]
    stage.transcript.append([found, reader("bounds", topic=topic, partition=0)])
    stage.refused(admin, "delete_records", topic=topic, partition=0, offset=99)


def group_administration(stage: Stage) -> None:
    """Groups are listed and described, their offsets read, and an empty group is deleted."""
    topic = stage.topic("watched", 2)
    group = stage.name("watched")
    admin = stage.driver()
    member = stage.driver()
    stage.subscribe(member, group, [topic])
    stage.wait_for_assignment([member], 2)
    for partition in range(2):
        send(admin, topic, partition, numbered("seen", partition, 4))
    member("commit", offsets=[[topic, p, 4, ""] for p in range(2)])
    until(stage, admin, [group], "list_groups", prefix=stage.prefix)
    until(stage, admin, ["STABLE", 1], "describe_group", group=group)
    if "delete group" not in stage.traits:
        stage.refused(admin, "delete_group", group=group)
    member.close()
    until(stage, admin, ["EMPTY", 0], "describe_group", group=group)
    until(
        stage, admin, [[topic, 0, 4], [topic, 1, 4]], "group_offsets", group=group, partitions=[[topic, 0], [topic, 1]]
    )
    if "delete offsets" not in stage.traits:
        admin("delete_offsets", group=group, topic=topic, partition=1)
        left = [[topic, 0, 4], [topic, 1, None]]
        until(stage, admin, left, "group_offsets", group=group, partitions=[[topic, 0], [topic, 1]])
    if "delete group" not in stage.traits:
        admin("delete_group", group=group)
        until(stage, admin, [], "list_groups", prefix=stage.prefix)
        stage.refused(admin, "delete_group", group=group)


def quota(stage: Stage) -> None:
    """A producer over its quota is told so and slowed down."""
    topic = stage.topic("limited")
    client_id = stage.name("limited")
    stage.broker_admin().set_client_quota(client_id, producer_byte_rate=QUOTA_BYTES_PER_SECOND)
    producer = stage.driver()
    producer("open_producer", transactional_id=None, client_id=client_id, timeout_ms=60_000)
    # Rates are measured over ten seconds: half as much again as they allow makes a pause of about five. A broker may hear of the quota
    # a moment after it was set; it then comes into force between one try and the next.
    for _ in range(TRIES):
        begin = time.monotonic()
        producer("send", topic=topic, partition=0, records=[record(None, "x" * QUOTA_BYTES_PER_SECOND * 15)])
        producer("send", topic=topic, partition=0, records=[record(None, "y")])
        elapsed = time.monotonic() - begin
        throttled = producer("throttled")
        if elapsed > 2 and (throttled is None or throttled > 1000):
            break
    else:
        raise AssertionError(f"two sends took {elapsed:.2f} s over the quota, the client saw a pause of {throttled} ms")
    stage.transcript.append("slowed down" if throttled is None else "told and slowed down")
