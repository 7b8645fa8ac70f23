"""Replicas that move between the directories of a node, on a simulated disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import AlterReplicaLogDirsRequest, DeleteTopicsRequest, DescribeLogDirsRequest
from barnabas.replication.directory_moves import DirectoryMoves, MoveStage
from barnabas.replication.replica_quota import UNBOUNDED
from barnabas.simulation.disk import SimDisk
from tests.node.asking import fetched, produce
from tests.node.several_directories import Several, break_directory
from tests.replication.brokers import Exceeded

ROOT = Path("/disks")


def made(disk: SimDisk, records: int = 3, **settings: str) -> Several:
    """Return a node with the topic t in a."""
    node = Several(ROOT, disk, **settings)
    node.create_topic("t")
    assert node.assigned("t") == "a"
    for number in range(records):
        produce(node, "t", b"record-%d" % number)
    return node


def move(node: Several, name: str, topic: str = "t", index: int = 0) -> int:
    Directory, Topic = AlterReplicaLogDirsRequest.AlterReplicaLogDir, AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic
    asked = Directory(path=f"/disks/{name}", topics=[Topic(name=topic, partitions=[index])])
    answer = node.ask(AlterReplicaLogDirsRequest(dirs=[asked]))
    code: int = answer.results[0].partitions[0].error_code
    return code


def moves(node: Several) -> DirectoryMoves:
    found = node.server.replica_manager.moves
    assert found is not None
    return found


def until(node: Several, is_so: Callable[[], object]) -> None:
    for _ in range(3_000):
        if is_so():
            return
        node.loop.run_until_complete(asyncio.sleep(0.001))
    raise AssertionError("it has not happened")


def home(node: Several) -> str:
    return Path(node.server.replica_manager.log_manager.directory_of("t", 0).root_dir).name


def has_all(node: Several, count: int = 3) -> bool:
    data = fetched(node, "t")
    return all(b"record-%d" % number in data for number in range(count))


def test_a_replica_moves_with_everything_and_takes_records_meanwhile() -> None:
    disk = SimDisk()
    node = made(disk)
    assert move(node, "c") == ErrorCode.NONE
    produce(node, "t", b"record-3")
    answer = node.ask(DescribeLogDirsRequest(topics=None))
    seen = {
        (Path(each.log_dir).name, part.is_future_key)
        for each in answer.results
        for topic in each.topics
        for part in topic.partitions
    }
    assert seen >= {("a", False)} or home(node) == "c"
    until(node, lambda: home(node) == "c")
    produce(node, "t", b"record-4")
    assert has_all(node, 5)
    assert (node.assigned("t"), node.described()) == ("c", {"a": [], "b": [], "c": ["t"]})
    assert repr(moves(node)) == "<DirectoryMoves none>"
    assert move(node, "c") == ErrorCode.NONE
    node.close()
    again = Several(ROOT, disk, seed=2)
    assert (has_all(again, 5), home(again)) == (True, "c")
    assert not [path for path in disk.paths() if path.startswith("/disks/a/t-0/")]
    again.close()


def stop_at(node: Several, stage: MoveStage) -> None:
    """Keep the move from going beyond a stage."""
    if stage is MoveStage.COPYING:
        moves(node).quota = Exceeded()
    else:
        moves(node).tell = lambda *_: None


def test_a_throttled_move_is_shown_and_can_be_given_up() -> None:
    node = made(SimDisk())
    stop_at(node, MoveStage.COPYING)
    assert move(node, "c") == ErrorCode.NONE
    answer = node.ask(DescribeLogDirsRequest(topics=None))
    parts = {Path(each.log_dir).name: topic.partitions[0] for each in answer.results for topic in each.topics}
    assert (parts["a"].is_future_key, parts["c"].is_future_key, parts["c"].offset_lag) == (False, True, 3)
    assert "t-0:COPYING" in repr(moves(node))
    assert move(node, "b") == ErrorCode.NONE
    assert node.described() == {"a": ["t"], "b": ["t"], "c": []}
    assert move(node, "a") == ErrorCode.NONE
    assert node.described() == {"a": ["t"], "b": [], "c": []}
    assert (home(node), has_all(node)) == ("a", True)
    node.close()


def test_a_replica_that_is_not_here_yet_goes_where_it_was_asked_for() -> None:
    node = Several(ROOT, SimDisk())
    assert move(node, "c") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.create_topic("t")
    assert node.assigned("t") == "c"
    assert move(node, "d") == ErrorCode.LOG_DIR_NOT_FOUND
    assert move(node, "a", "t" * 240) == ErrorCode.INVALID_TOPIC_EXCEPTION
    node.close()


@pytest.mark.parametrize("stage", [MoveStage.COPYING, MoveStage.ASSIGNING])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_move_goes_on_after_a_restart(stage: MoveStage, is_clean: bool) -> None:
    disk = SimDisk()
    node = made(disk)
    stop_at(node, stage)
    move(node, "c")
    until(node, lambda: stage.name in repr(moves(node)))
    if is_clean:
        node.close()
    else:
        disk.kill()
    again = Several(ROOT, disk, seed=2)
    until(again, lambda: home(again) == "c")
    assert (has_all(again), again.assigned("t")) == (True, "c")
    again.close()


def test_the_copy_is_cut_with_the_log_and_a_deleted_topic_takes_it_along() -> None:
    disk = SimDisk()
    node = made(disk)
    stop_at(node, MoveStage.ASSIGNING)
    move(node, "c")
    until(node, lambda: "ASSIGNING" in repr(moves(node)))
    partition = node.server.replica_manager.partition("t", 0)
    found = moves(node).future_of(partition)
    assert found is not None
    assert found[1].log_end_offset == 3
    partition.log.truncate_to(1)
    assert found[1].log_end_offset == 1
    node.server.replica_manager.log_manager.delete("t", 0)
    partition.is_deleted = True
    until(node, lambda: repr(moves(node)) == "<DirectoryMoves none>")
    assert not [path for path in disk.paths() if "-future/" in path]
    node.close()


def test_a_topic_that_is_deleted_while_it_moves_and_made_again() -> None:
    disk = SimDisk()
    node = made(disk)
    stop_at(node, MoveStage.COPYING)
    move(node, "c")
    node.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t")], timeout_ms=1000))
    until(node, lambda: "t" not in node.server.image.topics.by_name)
    assert not [path for path in disk.paths() if "-future/" in path]
    node.create_topic("t")
    first = node.assigned("t")
    produce(node, "t", b"record-0")
    there = next(name for name in "abc" if name != first)
    assert move(node, there) == ErrorCode.NONE
    moves(node).quota = UNBOUNDED
    until(node, lambda: home(node) == there)
    assert (has_all(node, 1), b"record-1" in fetched(node, "t")) == (True, False)
    node.close()
    again = Several(ROOT, disk, seed=2)
    assert (home(again), has_all(again, 1)) == (there, True)
    again.close()


@pytest.mark.parametrize("name", ["a", "c"])
def test_a_directory_that_fails_meanwhile(name: str) -> None:
    disk = SimDisk()
    node = made(disk)
    stop_at(node, MoveStage.ASSIGNING)
    move(node, "c")
    until(node, lambda: "ASSIGNING" in repr(moves(node)))
    break_directory(disk, ROOT / name)
    failing = next(each for each in node.node.log_manager.online if each.root_dir == f"/disks/{name}")
    failing.failure.is_bad("broken")
    until(node, lambda: repr(moves(node)) == "<DirectoryMoves none>")
    partition = node.server.replica_manager.partition("t", 0)
    until(node, lambda: (partition.lost is not None) == (name == "a"))
    if name == "c":
        produce(node, "t", b"record-3")
        assert has_all(node, 4)
        assert partition.log.future is None
    node.close()
    disk.on_call = None
    again = Several(ROOT, disk, seed=2)
    until(again, lambda: home(again) == "c")
    until(again, lambda: again.server.image.topics.by_name["t"].partitions[0].leader >= 0)
    assert has_all(again)
    again.close()


@pytest.mark.slow
def test_a_kill_at_each_step_of_a_move_loses_nothing() -> None:
    homes, call = set(), 1
    while killed_at(call, homes):
        call += 3
    assert "a" in homes
    assert call > 30


def killed_at(call: int, homes: set[str]) -> bool:
    """Kill a node at this call of its disk during a move, and start it again; return False if the move was over before."""
    disk = SimDisk(call)
    node = made(disk, 4)
    left = [call]

    def dies(_: str, path: str) -> OSError | None:
        left[0] -= 1
        return OSError(5, "the process has ended", path) if left[0] < 0 else None

    disk.on_call = dies
    move(node, "c")
    for _ in range(200):
        if left[0] < 0 or repr(moves(node)) == "<DirectoryMoves none>":
            break
        node.loop.run_until_complete(asyncio.sleep(0.0005))
    was_killed = left[0] < 0
    left[0] = -1
    moves(node).close()
    node.loop.run_until_complete(node.loop.shutdown_default_executor())
    disk.on_call = None
    if was_killed:
        homes.add("c" if "/disks/c/t-0/partition.metadata" in disk.paths() else "a")
    disk.kill()
    again = Several(ROOT, disk, seed=2)
    until(again, lambda: again.server.image.topics.by_name["t"].partitions[0].leader >= 0)
    until(again, lambda: repr(moves(again)) == "<DirectoryMoves none>")
    # The last record before may be torn by the kill.
    assert has_all(again), call
    again.close()
    return was_killed


@pytest.mark.parametrize("turns", range(6))
def test_the_target_fails_while_the_controller_learns_of_it(turns: int) -> None:
    """The sole replica is whole where it was. If the controller took it for lost, the partition would wait for an operator."""
    disk = SimDisk()
    node = made(disk)
    tell = moves(node).tell
    assert tell is not None
    told: list[str] = []

    def noted(*asked: Any) -> Any:
        told.append(asked[0])
        return tell(*asked)

    moves(node).tell = noted
    move(node, "c")
    while not told:
        node.loop.run_until_complete(asyncio.sleep(0))
    for _ in range(turns):
        node.loop.run_until_complete(asyncio.sleep(0))
    if home(node) == "c":
        node.close()
        assert turns, "the controller was not asked"
        return
    break_directory(disk, ROOT / "c")
    failing = next(each for each in node.node.log_manager.online if each.root_dir == "/disks/c")
    failing.failure.is_bad("broken")
    until(node, lambda: len(node.server.image.cluster.brokers[node.server.config.node_id].directories) == 2)
    registration = node.server.image.topics.by_name["t"].partitions[0]
    assert (node.assigned("t"), registration.leader_epoch, registration.leader) == ("a", 0, node.server.config.node_id)
    produce(node, "t", b"record-3")
    node.close()
    disk.on_call = None
    again = Several(ROOT, disk, seed=2)
    until(again, lambda: home(again) == "c")
    assert has_all(again, 4)
    again.close()
