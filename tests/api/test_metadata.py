"""Metadata, DescribeCluster and DescribeTopicPartitions on a whole node."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.partition_registration import NO_LEADER
from barnabas.metadata.recent_deletions import REMEMBERED_MS
from barnabas.metadata.topics_image import TopicImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
)
from barnabas.protocol.primitives import ZERO_UUID, Uuid
from tests.api.served_node import DIALLED, Serving

Topic = MetadataRequest.MetadataRequestTopic
Asked = DescribeTopicPartitionsRequest.TopicRequest
Cursor = DescribeTopicPartitionsRequest.Cursor
INT32_MIN = -(1 << 31)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Any:
    node = Serving(tmp_path_factory.mktemp("metadata"))
    node.create_topic("wide", 12)
    node.create_topic("narrow")
    node.create_topic("__consumer_offsets", 2)
    yield node
    node.close()


def metadata(serving: Serving, *names: str, version: int = 13, **options: Any) -> Any:
    options.setdefault("allow_auto_topic_creation", False)
    return serving.ask(MetadataRequest(topics=[Topic(name=name) for name in names], **options), version)


@pytest.mark.parametrize("version", range(14))
def test_all_none_and_one_topic(serving: Serving, version: int) -> None:
    everything = serving.ask(MetadataRequest(topics=[] if version == 0 else None), version)
    assert {topic.name for topic in everything.topics} >= {"wide", "narrow", "__consumer_offsets"}
    if version > 0:
        assert serving.ask(MetadataRequest(topics=[]), version).topics == []
        assert everything.controller_id == 1
        assert {t.name: t.is_internal for t in everything.topics}["__consumer_offsets"]
    (wide,) = metadata(serving, "wide", version=version, allow_auto_topic_creation=True).topics
    assert [partition.partition_index for partition in wide.partitions] == list(range(12))
    assert {(p.leader_id, tuple(p.replica_nodes), tuple(p.isr_nodes)) for p in wide.partitions} == {(1, (1,), (1,))}
    assert all(p.error_code == 0 and p.offline_replicas == [] for p in wide.partitions)
    assert (wide.topic_id != ZERO_UUID) == (version >= 10)


def test_auto_advertised_listeners_answer_with_the_address_dialled(serving: Serving) -> None:
    (broker,) = metadata(serving).brokers
    assert (broker.node_id, broker.host, broker.port) == (1, *DIALLED)
    (described,) = serving.ask(DescribeClusterRequest()).brokers
    assert (described.broker_id, described.host, described.port, described.is_fenced) == (1, *DIALLED, False)


def test_explicit_advertised_listeners_are_answered_by_name(tmp_path: Path) -> None:
    node = Serving(tmp_path, advertised_listeners="PLAINTEXT://public.example:29092")
    try:
        (broker,) = metadata(node).brokers
        assert (broker.host, broker.port) == ("public.example", 29092)
        node.connection.listener_name = "OTHER"
        assert metadata(node).brokers == []
    finally:
        node.close()


def test_missing_topics_have_an_error(serving: Serving) -> None:
    answers = metadata(serving, "missing", "bad name", "..", "").topics
    assert [(t.name, t.error_code) for t in answers] == [
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    unknown = serving.ask(MetadataRequest(topics=[Topic(name=None, topic_id=Uuid(b"x" * 16))]), 12).topics
    assert [(t.name, t.topic_id, t.error_code) for t in unknown] == [(None, b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_topics_by_id_from_version_12(serving: Serving) -> None:
    (wide,) = metadata(serving, "wide").topics
    (again,) = serving.ask(MetadataRequest(topics=[Topic(name=None, topic_id=wide.topic_id)]), 12).topics
    assert (again.name, again.error_code, len(again.partitions)) == ("wide", 0, 12)
    for topic in (Topic(name=None, topic_id=wide.topic_id), Topic(name="wide", topic_id=wide.topic_id)):
        (refused,) = serving.ask(MetadataRequest(topics=[topic]), 10).topics
        assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_authorized_operations_only_when_asked(serving: Serving) -> None:
    silent = metadata(serving, "wide", version=8)
    assert (silent.cluster_authorized_operations, silent.topics[0].topic_authorized_operations) == (
        INT32_MIN,
        INT32_MIN,
    )
    asked = metadata(
        serving,
        "wide",
        version=8,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    assert (asked.cluster_authorized_operations, asked.topics[0].topic_authorized_operations) == (8096, 3576)


def test_auto_creation_responds_when_the_topic_exists(serving: Serving) -> None:
    (created,) = metadata(serving, "auto-created", allow_auto_topic_creation=True).topics
    assert (created.error_code, [p.leader_id for p in created.partitions]) == (0, [1])
    # Versions below 4 have no flag and always allow it.
    (old,) = metadata(serving, "auto-created-too", version=1, allow_auto_topic_creation=True).topics
    assert (old.error_code, len(old.partitions)) == (0, 1)
    (impossible,) = metadata(serving, "bad name", allow_auto_topic_creation=True).topics
    assert impossible.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    # Dots and underscores collide; the controller refuses, and its code is passed on.
    metadata(serving, "a.b", allow_auto_topic_creation=True)
    (colliding,) = metadata(serving, "a_b", allow_auto_topic_creation=True).topics
    assert colliding.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_each_created_topic_is_a_line_of_the_log_that_names_the_client(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "barnabas.api"):
        metadata(serving, "typo-1", "typo-2", "bad name", allow_auto_topic_creation=True)
        metadata(serving, "typo-1", allow_auto_topic_creation=True)
        metadata(serving, "missing")
    said = "which client test at 10.0.0.9 asked for; auto.create.topics.enable=false prevents this"
    assert caplog.messages == [f"Created topic typo-1, {said}", f"Created topic typo-2, {said}"]


def test_the_line_of_an_internal_topic_names_no_setting_that_would_not_help(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "barnabas.api"):
        (found,) = metadata(serving, "__transaction_state", allow_auto_topic_creation=True).topics
    assert found.error_code == 0
    assert (
        "Created internal topic __transaction_state, which a request of client test at 10.0.0.9 needs"
        in caplog.messages
    )


def test_a_topic_deleted_a_moment_ago_is_unknown_and_created_again(serving: Serving) -> None:
    """As in Apache Kafka, whose clients delete a topic and then ask whether it is gone."""

    def delete(name: str) -> None:
        serving.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=30_000))

    serving.create_topic("gone")
    delete("gone")
    gone, new = metadata(serving, "gone", "new", allow_auto_topic_creation=True).topics
    assert (gone.error_code, gone.partitions, new.error_code) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [], 0)
    (again,) = metadata(serving, "gone", allow_auto_topic_creation=True).topics
    assert (again.error_code, len(again.partitions)) == (0, 1)
    delete("gone")
    (gone,) = metadata(serving, "gone", allow_auto_topic_creation=True).topics
    assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    metadata(serving, "gone")
    delete("gone")
    serving.now_ms += REMEMBERED_MS
    (later,) = metadata(serving, "gone", allow_auto_topic_creation=True).topics
    assert later.error_code == 0


def test_a_reset_broker_has_deleted_nothing(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    try:
        node.create_topic("t")
        node.loop.run_until_complete(node.server.reset())
        (made,) = metadata(node, "t", allow_auto_topic_creation=True).topics
        assert made.error_code == 0
    finally:
        node.close()


def test_auto_creation_can_be_off(tmp_path: Path) -> None:
    node = Serving(tmp_path, auto_create_topics_enable="false")
    try:
        (missing,) = metadata(node, "missing", allow_auto_topic_creation=True).topics
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    finally:
        node.close()


def test_a_topic_created_again_has_another_id(serving: Serving) -> None:
    """Trap 9: clients that kept the old id must notice."""
    serving.create_topic("again")
    (before,) = metadata(serving, "again").topics
    serving.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="again")], timeout_ms=30_000))
    serving.create_topic("again")
    (after,) = metadata(serving, "again").topics
    assert before.topic_id != after.topic_id
    (gone,) = serving.ask(MetadataRequest(topics=[Topic(name=None, topic_id=before.topic_id)]), 13).topics
    assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_describe_cluster_describes_only_brokers(serving: Serving) -> None:
    answer = serving.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    assert (answer.controller_id, answer.cluster_authorized_operations) == (1, 8096)
    assert serving.ask(DescribeClusterRequest()).cluster_authorized_operations == INT32_MIN
    for endpoint_type, code in ((2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)):
        assert serving.ask(DescribeClusterRequest(endpoint_type=endpoint_type), 1).error_code == code


def pages(serving: Serving, *names: str, limit: int) -> list[list[tuple[str, int]]]:
    """Follow the cursor to its end."""
    found, cursor = [], None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[Asked(name=name) for name in names], response_partition_limit=limit, cursor=cursor
        )
        answer = serving.ask(request)
        found.append([(t.name, p.partition_index) for t in answer.topics for p in t.partitions])
        if answer.next_cursor is None:
            return found
        cursor = Cursor(topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index)


@pytest.mark.parametrize("limit", [1, 2, 5, 12, 13, 2000])
def test_describe_topic_partitions_in_pages(serving: Serving, limit: int) -> None:
    found = pages(serving, "wide", "narrow", limit=limit)
    assert [item for page in found for item in page] == [("narrow", 0), *(("wide", index) for index in range(12))]
    assert all(len(page) <= limit for page in found)


def test_describe_topic_partitions_of_all_and_of_unknown_topics(serving: Serving) -> None:
    everything = serving.ask(DescribeTopicPartitionsRequest(topics=[]))
    names = [topic.name for topic in everything.topics]
    assert names == sorted(names)
    assert {"wide", "narrow"} <= set(names)
    some = serving.ask(DescribeTopicPartitionsRequest(topics=[Asked(name="no"), Asked(name="b d"), Asked(name="wide")]))
    assert [(t.name, t.error_code) for t in some.topics] == [
        ("b d", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("wide", 0),
    ]
    assert some.topics[2].topic_authorized_operations == 3576
    assert some.topics[2].partitions[0].eligible_leader_replicas == []


@pytest.mark.parametrize(
    "cursor", [Cursor(topic_name="elsewhere", partition_index=0), Cursor(topic_name="wide", partition_index=-1)]
)
def test_an_invalid_cursor_is_rejected(serving: Serving, cursor: Any) -> None:
    answer = serving.ask(DescribeTopicPartitionsRequest(topics=[Asked(name="wide")], cursor=cursor))
    assert [(t.name, t.error_code) for t in answer.topics] == [("wide", ErrorCode.INVALID_REQUEST)]


def test_a_partition_without_a_leader(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    image = serving.server.services.image()
    topic = image.topics.by_name["narrow"]
    orphan = TopicImage(topic.name, topic.topic_id, {0: topic.partitions[0]._replace(leader=NO_LEADER, isr=())})
    monkeypatch.setitem(image.topics.by_name, "narrow", orphan)
    (answered,) = metadata(serving, "narrow").topics
    (partition,) = answered.partitions
    assert (answered.error_code, partition.error_code, partition.leader_id) == (0, ErrorCode.LEADER_NOT_AVAILABLE, -1)
