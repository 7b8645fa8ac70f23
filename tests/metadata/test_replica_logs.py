"""A broker's word on its logs holds for one broker epoch and one leader epoch, and is forgotten with the broker."""

from __future__ import annotations

from barnabas.metadata.replica_logs import ReplicaLog, ReplicaLogs
from barnabas.protocol.messages import BrokerHeartbeatRequest

A = b"a" * 16


def said(*ends: int, leader_epoch: int = 3) -> list[BrokerHeartbeatRequest.ReplicaLog]:
    """The words of a heartbeat on the partitions 0, 1, …"""
    return [
        BrokerHeartbeatRequest.ReplicaLog(
            topic_id=A,
            partition=index,
            current_leader_epoch=leader_epoch,
            last_written_leader_epoch=2,
            log_end_offset=end,
        )
        for index, end in enumerate(ends)
    ]


def test_only_what_is_new_is_returned() -> None:
    logs = ReplicaLogs()
    assert logs.note(1, 10, said(5, 6)) == {(A, 0), (A, 1)}
    assert logs.note(1, 10, said(5, 7)) == {(A, 1)}
    assert logs.note(1, 10, said(5)) == set()
    assert logs.known((A, 1), 3, {1: 10}), "of very many partitions a heartbeat has only some"
    assert logs.note(1, 10, said()) == set()
    assert logs.known((A, 0), 3, {1: 10}) == {}, "the partition has a leader again"


def test_a_former_process_and_a_former_leader_epoch_count_for_nothing() -> None:
    logs = ReplicaLogs()
    logs.note(1, 10, said(5))
    assert logs.known((A, 0), 3, {1: 10, 2: 11}) == {1: ReplicaLog(10, 3, 2, 5)}
    assert logs.known((A, 0), 3, {1: 12}) == {}
    assert logs.known((A, 0), 4, {1: 10}) == {}
    logs.forget(1)
    assert logs.known((A, 0), 3, {1: 10}) == {}


def test_a_broker_that_never_speaks_of_logs_is_mute() -> None:
    logs = ReplicaLogs()
    logs.note(1, 10, None)
    logs.note(2, 10, [])
    assert logs.mute == {1}
    logs.note(1, 10, [])
    assert logs.mute == set()
    logs.note(1, 10, None)
    logs.forget(1)
    assert logs.mute == set()


def test_the_higher_epoch_is_the_longer_log_and_then_the_higher_end() -> None:
    ranks = [ReplicaLog(1, 3, *log).rank for log in ((-1, 0), (2, 9), (3, 4), (3, 5))]
    assert ranks == sorted(ranks)


def test_a_wait_begins_anew_with_each_leader_epoch() -> None:
    logs = ReplicaLogs()
    assert [logs.waits_for_ms((A, 0), 3, now_ms) for now_ms in (100, 150)] == [0, 50]
    assert logs.waits_for_ms((A, 0), 5, 200) == 0
    logs.waits_for_ms((A, 1), 1, 200)
    logs.end_waits(but=[(A, 1)])
    assert list(logs.waiting) == [(A, 1)]
