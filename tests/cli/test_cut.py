"""`barnabas cut`: what stands between two offsets. The transcript and the screens show the rest."""

from __future__ import annotations

from barnabas.cli.cut import _status
from barnabas.client.admin import Cut, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def cut(*partitions: TopicPartition, topic_id: str = "one") -> Cut:
    return Cut(dict.fromkeys(partitions, 5), {each.topic: topic_id for each in partitions}, "read_committed", 0)


def test_two_cuts() -> None:
    assert _status(T0, cut(T0), cut(T0), None) is None
    assert _status(T0, cut(T0), cut(), None) == "only in the first"
    assert _status(T0, cut(), cut(T0), None) == "only in the second"
    assert _status(T1, cut(T0), cut(T0, T1), None) == "new partition"
    assert _status(T1, cut(T0, T1), cut(T0), None) == "only in the first"
    assert _status(T0, cut(T0), cut(T0, topic_id="two"), None) == "another topic of this name"


def test_a_cut_and_now() -> None:
    assert _status(T0, cut(T0), cut(T0), {T0: 5}) is None
    assert _status(T0, cut(T0), cut(T0), {T0: 6}) == "records before 6 are deleted"
    assert _status(T0, cut(T0), cut(), {}) == "topic does not exist"
