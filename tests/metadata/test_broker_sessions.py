"""When a broker's session expires."""

from __future__ import annotations

from barnabas.metadata.broker_sessions import BrokerSessions
from barnabas.metadata.cluster_image import BrokerRegistration, ClusterImage


def cluster(*brokers: int, fenced: int = 0) -> ClusterImage:
    return ClusterImage({i: BrokerRegistration(i, 1, b"i" * 16, (), {}, None, i == fenced, False, ()) for i in brokers})


def test_a_session_lasts_for_the_timeout_after_the_last_contact() -> None:
    sessions = BrokerSessions(100)
    assert not sessions.is_alive(1, 0)
    sessions.touch(1, 0, 5)
    sessions.touch(1, 50, 5)
    assert sessions.is_alive(1, 149)
    assert not sessions.is_alive(1, 150)
    assert not sessions.is_alive(2, 60)


def test_a_forgotten_broker_is_not_alive() -> None:
    sessions = BrokerSessions(100)
    sessions.touch(1, 0, 5)
    sessions.touch(2, 0, 5)
    sessions.forget(1)
    sessions.forget(3)
    assert not sessions.is_alive(1, 0)
    assert sessions.is_alive(2, 0)
    assert repr(sessions) == "<BrokerSessions brokers=[2]>"


def test_stale_brokers_are_unfenced_ones_whose_session_has_expired() -> None:
    sessions = BrokerSessions(100)
    sessions.touch(1, 0, 5)
    sessions.touch(2, 1, 5)
    sessions.touch(3, 0, 5)
    assert sessions.stale(cluster(1, 2, 3, fenced=3), 99) == []
    assert sessions.stale(cluster(1, 2, 3, fenced=3), 100) == [1]
    assert sessions.stale(cluster(1, 2, 3, fenced=3), 101) == [1, 2]


def test_a_broker_not_heard_from_gets_one_full_timeout() -> None:
    sessions = BrokerSessions(100)
    assert sessions.stale(cluster(1), 1000) == []
    assert sessions.stale(cluster(1), 1099) == []
    assert sessions.stale(cluster(1), 1100) == [1]


def test_the_standstill_of_the_controller_is_not_the_silence_of_brokers() -> None:
    sessions = BrokerSessions(100)
    sessions.touch(1, 0, 5)
    sessions.stood_still(200)
    assert sessions.stale(cluster(1), 250) == []
    assert sessions.stale(cluster(1), 300) == [1]


def test_a_session_that_is_ended_is_stale_at_once() -> None:
    sessions = BrokerSessions(100)
    sessions.touch(1, 50, 5)
    sessions.touch(2, 50, 5)
    sessions.expire(1, 60)
    assert sessions.stale(cluster(1, 2), 60) == [1]
    sessions.touch(1, 61, 5)
    assert sessions.stale(cluster(1, 2), 61) == []


def test_another_incarnation_need_not_wait_once_the_connection_of_the_heartbeats_has_ended() -> None:
    sessions = BrokerSessions(100)
    sessions.touch(1, 0, 5)
    sessions.disconnected.add(1)
    assert not sessions.is_alive(1, 1)
    # Its session goes on all the same.
    assert sessions.stale(cluster(1), 99) == []
    sessions.touch(1, 2, 5)
    assert sessions.is_alive(1, 3)
    sessions.disconnected.add(1)
    sessions.forget(1)
    assert sessions.disconnected == set()
