"""A broker describes its replicas without a leader."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.log.errors import KafkaStorageError
from barnabas.metadata.partition_index import WITHOUT_LEADER
from barnabas.replication import leaderless_replicas
from barnabas.replication.leaderless_replicas import LeaderlessReplicas, last_epoch

A = b"a" * 16


class Log:
    """The ends of a log, and the epoch of each of its records."""

    def __init__(self, start: int, *epochs: int, latest: int = -1) -> None:
        self.log_start_offset, self.log_end_offset = start, start + len(epochs)
        self._epochs = epochs
        self.latest_epoch = latest

    def epoch_for_offset(self, offset: int) -> int:
        return self._epochs[offset - self.log_start_offset]


class Manager:
    """As much of a ReplicaManager as the module uses; topic a has the partitions that are given."""

    def __init__(self, logs: dict[int, Any], *, leaders: dict[int, int] | None = None) -> None:
        self.topics: Any = {"a": SimpleNamespace(name="a", topic_id=A, partitions={})}
        for index, log in logs.items():
            self.topics["a"].partitions[index] = SimpleNamespace(
                topic=self.topics["a"], index=index, open_log=log, leader=(leaders or {}).get(index, -1), leader_epoch=4
            )
        self.log_manager = SimpleNamespace(get=self.get, is_of=lambda *_: self.unopened_is_of_the_topic)
        self.has_bad_disk = False
        self.unopened: Any = None
        self.unopened_is_of_the_topic = False
        self.show(*logs)

    def get(self, topic: str, index: int) -> Any:
        if self.has_bad_disk:
            raise KafkaStorageError("bad disk")
        return self.unopened

    def show(self, *indexes: int, topic_id: bytes = A) -> None:
        """Publish an image in which these partitions have no leader."""
        index = {WITHOUT_LEADER: {topic_id: indexes}} if indexes else {}
        topics = SimpleNamespace(partition_index=index, by_id={topic_id: SimpleNamespace(name="a")})
        self.image = SimpleNamespace(topics=topics)


def said(manager: Manager) -> list[tuple[int, int, int, int]]:
    replicas = LeaderlessReplicas(manager)  # type: ignore[arg-type]
    return [
        (log.partition, log.current_leader_epoch, log.last_written_leader_epoch, log.log_end_offset)
        for log in replicas.logs()
    ]


def test_it_says_the_last_epoch_and_the_end_of_each_log() -> None:
    assert said(Manager({0: Log(0, 1, 1, 3), 1: None})) == [(0, 4, 3, 3), (1, 4, -1, 0)]


@pytest.mark.parametrize(
    ("log", "epoch"), [(Log(0, latest=2), -1), (Log(5, latest=2), 2), (Log(5, 1, latest=2), 1), (Log(0, 1, 2), 2)]
)
def test_the_last_epoch_is_that_of_the_last_record(log: Any, epoch: int) -> None:
    assert last_epoch(log) == epoch


def test_it_says_nothing_of_a_partition_that_still_has_its_leader_here() -> None:
    assert said(Manager({0: Log(0, 1)}, leaders={0: 2})) == []


def test_it_says_nothing_of_a_log_that_cannot_be_opened_or_is_of_another_topic() -> None:
    manager = Manager({0: None})
    manager.has_bad_disk = True
    assert said(manager) == []
    other = Manager({0: Log(0, 1)})
    other.show(0, topic_id=b"b" * 16)
    assert said(other) == []
    other.show()
    assert said(other) == []


def test_a_log_of_an_older_topic_of_this_name_is_an_empty_one() -> None:
    manager = Manager({0: None})
    manager.unopened = Log(0, 1, 1, 3)
    assert said(manager) == [(0, 4, -1, 0)]
    manager.unopened_is_of_the_topic = True
    assert said(manager) == [(0, 4, 3, 3)]


def test_many_partitions_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaderless_replicas, "PARTITIONS_MAX", 2)
    replicas = LeaderlessReplicas(Manager({index: Log(0) for index in range(3)}))  # type: ignore[arg-type]
    turns = [[log.partition for log in replicas.logs()] for _ in range(3)]
    assert turns == [[0, 1], [2, 0], [1, 2]]


def test_it_knows_when_other_partitions_have_no_leader() -> None:
    manager = Manager({0: Log(0)})
    replicas = LeaderlessReplicas(manager)  # type: ignore[arg-type]
    assert [replicas.have_changed(), replicas.have_changed()] == [True, False]
    manager.show(0, 1)
    assert replicas.have_changed()
    manager.show()
    assert not replicas.have_changed(), "nothing has to be said"
