"""Dead letters, on a whole node."""

from __future__ import annotations

import pytest

from barnabas.records.record import iter_records
from tests.api.share_cluster import (
    ACCEPT,
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    REJECT,
    RELEASE,
    TOPIC_RESOURCE,
    Cluster,
    Member,
    acquired,
    outcome,
)


def letters(cluster: Cluster) -> list[tuple[bytes | None, dict[str, bytes | None]]]:
    cluster.until(lambda: cluster.offsets()[0][1] == 0)
    replicas = cluster.node.server.replica_manager
    if "dlq.q" not in replicas.topics:
        return []
    return [
        (record.value, dict(record.headers))
        for chunk in replicas.read_internal("dlq.q", 0, 0)
        for record in iter_records(chunk)
    ]


def dead_letter_cluster(cluster: Cluster, **settings: str) -> Member:
    cluster.node.create_topic("dlq.q", 1, errors_deadletterqueue_group_enable="true")
    cluster.configure(GROUP_RESOURCE, "g", errors_deadletterqueue_topic_name="dlq.q", **settings)
    cluster.produce(b"good", b"bad", b"ugly")
    member = Member(cluster).join()
    member.fetch()
    return member


def test_rejected_records_become_dead_letters(cluster: Cluster) -> None:
    member = dead_letter_cluster(cluster, errors_deadletterqueue_copy_record_enable="true")
    assert outcome(member.acknowledge((0, 2, [ACCEPT, REJECT, ACCEPT]))) == [(0, 0)]
    assert letters(cluster) == [
        (
            b"bad",
            {
                "__dlq.errors.topic": b"q",
                "__dlq.errors.partition": b"0",
                "__dlq.errors.offset": b"1",
                "__dlq.errors.group": b"g",
                "__dlq.errors.delivery.count": b"1",
                "__dlq.errors.message": b"Offset rejected by client.",
            },
        )
    ]
    assert cluster.offsets()[0][1] == 0


def test_without_copying_a_letter_has_only_headers(cluster: Cluster) -> None:
    member = dead_letter_cluster(cluster)
    member.acknowledge((0, 2, [ACCEPT, REJECT, ACCEPT]))
    assert [value for value, _ in letters(cluster)] == [None]


def test_records_delivered_too_often_become_dead_letters(cluster: Cluster) -> None:
    member = dead_letter_cluster(cluster, share_delivery_count_limit="2")
    member.acknowledge((0, 0, [RELEASE]), (1, 2, [ACCEPT]))
    assert acquired(member.fetch()) == [(0, 0, 0, 2)]
    member.acknowledge((0, 0, [RELEASE]))
    ((_, headers),) = letters(cluster)
    assert headers["__dlq.errors.message"] == b"Offset delivery count exceeded the threshold."
    assert headers["__dlq.errors.delivery.count"] == b"2"


def test_a_topic_that_does_not_allow_letters_gets_none(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    member = dead_letter_cluster(cluster)
    cluster.configure(TOPIC_RESOURCE, "dlq.q", errors_deadletterqueue_group_enable="false")
    member.acknowledge((0, 2, [REJECT]))
    assert letters(cluster) == []
    assert "does not allow dead letters" in caplog.text
    assert cluster.offsets()[0][1] == 0


def test_a_missing_topic_is_created_if_that_is_allowed(cluster: Cluster) -> None:
    cluster.configure(GROUP_RESOURCE, "g", errors_deadletterqueue_topic_name="dlq.q")
    cluster.configure(BROKER_RESOURCE, "", errors_deadletterqueue_auto_create_topics_enable="true")
    cluster.produce(b"x")
    member = Member(cluster).join()
    member.fetch()
    member.acknowledge((0, 0, [REJECT]))
    assert len(letters(cluster)) == 1


def test_a_letter_that_a_crash_interrupts_is_written_after_it(cluster: Cluster) -> None:
    member = dead_letter_cluster(cluster)
    writer = cluster.node.server.services.share.partitions.settings.dead_letters
    assert writer is not None
    writer.write = lambda *a, **k: cluster.node.loop.create_future()  # type: ignore[method-assign]
    assert outcome(member.acknowledge((0, 0, [REJECT]), (1, 2, [ACCEPT]))) == [(0, 0)]
    cluster.crash()
    member.session_epoch = 0
    assert acquired(member.fetch()) == [], "a record on its way to the dead letters is not delivered"
    ((_, headers),) = letters(cluster)
    assert headers["__dlq.errors.offset"] == b"0"
    assert cluster.offsets()[0][1] == 0
