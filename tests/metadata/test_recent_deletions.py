"""RecentDeletions: a name is known for a minute after its topic's deletion was committed."""

from __future__ import annotations

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.recent_deletions import REMEMBERED_MS, RecentDeletions
from barnabas.protocol.messages import RemoveTopicRecord, TopicRecord
from barnabas.protocol.primitives import Uuid

T, U = Uuid(b"t" * 16), Uuid(b"u" * 16)


def test_for_a_minute() -> None:
    now_ms = 1_000
    recent = RecentDeletions(lambda: now_ms)

    def commit(image: MetadataImage, *records: TopicRecord | RemoveTopicRecord) -> MetadataImage:
        delta = MetadataDelta(image)
        for record in records:
            delta.replay(record)
        recent.apply(delta)
        return delta.apply()

    image = commit(MetadataImage(), TopicRecord(name="t", topic_id=T), TopicRecord(name="u", topic_id=U))
    assert "t" not in recent
    image = commit(image, RemoveTopicRecord(topic_id=T))
    assert "t" in recent
    assert "u" not in recent
    now_ms += REMEMBERED_MS - 1
    image = commit(image, RemoveTopicRecord(topic_id=U))
    assert "t" in recent
    now_ms += 1
    assert "t" not in recent
    assert "u" in recent
    commit(image)
    now_ms += REMEMBERED_MS
    assert "u" not in recent
