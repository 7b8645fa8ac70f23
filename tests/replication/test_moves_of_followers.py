"""Replicas that move between the directories of a broker while other brokers lead them, take them over, or get them instead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.errors import ErrorCode
from barnabas.replication.directory_moves import DirectoryMoves
from barnabas.replication.replica_quota import UNBOUNDED
from tests.replication.brokers import Broker, Cluster, Exceeded


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster(log_dirs=("/a", "/b"))
    made.create_topic()
    yield made
    made.close()


def moves(broker: Broker) -> DirectoryMoves:
    found = broker.replicas.moves
    assert found is not None
    return found


def home(broker: Broker) -> str:
    root: str = broker.logs.directory_of("orders", 0).root_dir
    return root


def move(broker: Broker, *, is_stalled: bool = False) -> str:
    """Begin to move the replica to the directory where it is not; return that."""
    moves(broker).quota = Exceeded() if is_stalled else UNBOUNDED
    target: LogManager = next(each for each in broker.logs.online if each.root_dir != home(broker))
    moves(broker).begin(broker.partition(), target)
    return target.root_dir


def copy_of(broker: Broker) -> PartitionLog:
    found = moves(broker).future_of(broker.partition())
    assert found is not None
    return found[1]


def futures(broker: Broker) -> list[str]:
    return [path for path in broker.disk.paths() if "-future/" in path]


@pytest.mark.parametrize("node_id", [1, 2], ids=["leader", "follower"])
def test_a_replica_moves_while_the_leader_goes_on(cluster: Cluster, node_id: int) -> None:
    sent = [cluster[1].produce(b"%d" % number) for number in range(20)]
    cluster.advance(500)
    target = move(cluster[node_id])
    for number in range(200):
        sent.append(cluster[1].produce(b"meanwhile %d" % number))
        cluster.advance(2)
    cluster.advance(2_000)
    assert {each.outcome for each in sent} == {"NONE"}
    assert (home(cluster[node_id]), futures(cluster[node_id])) == (target, [])
    cluster.assert_identical()
    # The other one, which has its log from there, leads and follows as before.
    cluster[3 - node_id].kill()
    cluster.fence(3 - node_id)
    cluster.advance(1_000)
    more = cluster[cluster.now().leader].produce(b"after")
    cluster.advance(1_000)
    assert more.outcome == "NONE"
    cluster[3 - node_id].start()
    cluster.advance(3_000)
    assert cluster.isr() == (1, 2, 3)
    cluster.assert_identical()


@pytest.mark.parametrize("is_stalled", [False, True], ids=["after the exchange", "before it"])
def test_a_replica_moves_while_it_truncates(cluster: Cluster, is_stalled: bool) -> None:
    """The old leader has records that no other has; the new leader makes it truncate them, and its copy with it."""
    committed = cluster[1].produce(b"a")
    cluster.advance(1_000)
    cluster.isolate(1)
    lost = cluster[1].produce(b"lost", b"lost too")
    told: list[str] = []
    moves(cluster[1]).tell = lambda topic, *_: told.append(topic)
    move(cluster[1])
    copy = copy_of(cluster[1])
    cluster.advance(5)
    assert (copy.log_end_offset, told) == (3, ["orders"])
    if not is_stalled:
        moves(cluster[1]).tell = None
    cluster.fence(1)
    cluster.advance(20)
    kept = cluster[2].produce(b"kept")
    cluster.advance(100)
    assert (committed.outcome, lost.outcome, kept.outcome) == ("NONE", "NOT_LEADER_OR_FOLLOWER", "NONE")
    cluster.heal()
    cluster.unfence(1)
    cluster.advance(1_000)
    if is_stalled:
        assert (copy_of(cluster[1]), copy.log_end_offset) == (copy, 1), "cut, and waiting for the controller"
        moves(cluster[1]).tell = None
    cluster.advance(2_000)
    assert (repr(moves(cluster[1])), futures(cluster[1])) == ("<DirectoryMoves none>", [])
    assert cluster.isr() == (1, 2, 3)
    cluster.assert_identical()


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_follower_stops_in_the_middle_and_goes_on(cluster: Cluster, is_killed: bool) -> None:
    cluster[1].produce(b"a")
    cluster.advance(1_000)
    target = move(cluster[2], is_stalled=True)
    cluster[2].kill() if is_killed else cluster[2].stop()
    cluster.fence(2)
    sent = cluster[1].produce(b"b")
    cluster.advance(1_000)
    assert sent.outcome == "NONE"
    cluster[2].start()
    cluster.advance(3_000)
    assert (home(cluster[2]), cluster.isr()) == (target, (1, 2, 3))
    cluster.assert_identical()


def test_a_partition_is_reassigned_while_its_replica_moves(cluster: Cluster) -> None:
    cluster[1].produce(b"a")
    cluster.advance(1_000)
    move(cluster[2], is_stalled=True)
    assert futures(cluster[2])
    cluster.reassign(1, 3)
    cluster.advance(2_000)
    assert cluster.now().replicas == (1, 3)
    assert (repr(moves(cluster[2])), futures(cluster[2])) == ("<DirectoryMoves none>", [])
    assert cluster[2].logs.get("orders", 0) is None
    cluster[1].produce(b"b")
    cluster.reassign(1, 2, 3)
    cluster.advance(3_000)
    assert cluster.isr() == (1, 2, 3)
    target = move(cluster[2])
    cluster.advance(1_000)
    assert home(cluster[2]) == target
    cluster.assert_identical()


def test_a_partition_is_reassigned_while_the_broker_is_away(cluster: Cluster) -> None:
    """Its copy is of a partition that is not here any more: the next start deletes it, and keeps the log as a stray."""
    cluster[1].produce(b"a")
    cluster.advance(1_000)
    move(cluster[2], is_stalled=True)
    cluster[2].kill()
    cluster.fence(2)
    cluster.reassign(1, 3)
    cluster.advance(1_000)
    cluster[2].start()
    cluster.advance(1_000)
    assert futures(cluster[2]) == []
    with pytest.raises(Exception) as raised:
        cluster[2].partition()
    assert getattr(raised.value, "code", None) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.reassign(1, 2, 3)
    cluster.advance(3_000)
    assert cluster.isr() == (1, 2, 3)
    cluster.assert_identical()
