"""A node with several `log.dirs`: where replicas go, and what a restart, a kill and a foreign directory do."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import AlterReplicaLogDirsRequest
from tests.node.asking import fetched, produce
from tests.node.several_directories import NAMES, Several


def logs_in(folder: Path) -> dict[str, list[str]]:
    return {name: sorted(path.name for path in (folder / name).glob("t*-0")) for name in NAMES}


def test_new_replicas_go_where_the_fewest_are_and_stay_there(tmp_path: Path) -> None:
    node = Several(tmp_path)
    for index in range(6):
        node.create_topic(f"t{index}")
    assert [node.assigned(f"t{index}") for index in range(6)] == ["a", "b", "c", "a", "b", "c"]
    for index in reversed(range(6)):
        produce(node, f"t{index}", b"first")
    there = {"a": ["t0-0", "t3-0"], "b": ["t1-0", "t4-0"], "c": ["t2-0", "t5-0"]}
    assert logs_in(tmp_path) == there
    assert node.described() == {"a": ["t0", "t3"], "b": ["t1", "t4"], "c": ["t2", "t5"]}
    assert [path.parent.name for path in tmp_path.glob("*/__cluster_metadata-0")] == ["b"]
    registered = node.server.image.cluster.brokers[node.server.config.node_id].directories
    assert len(registered) == 3
    node.close()
    assert len(list(tmp_path.glob("*/.kafka_cleanshutdown"))) == 3

    again = Several(tmp_path)
    for index in range(6):
        assert b"first" in fetched(again, f"t{index}")
    assert again.described() == {"a": ["t0", "t3"], "b": ["t1", "t4"], "c": ["t2", "t5"]}
    assert logs_in(tmp_path) == there
    again.close()


def test_a_replica_moves_between_directories(tmp_path: Path) -> None:
    node = Several(tmp_path)
    node.create_topic("t")
    node.create_topic("u")

    def moved(path: str, topic: str = "t") -> int:
        Directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
        Topic = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic
        directory = Directory(path=path, topics=[Topic(name=topic, partitions=[0])])
        answer = node.ask(AlterReplicaLogDirsRequest(dirs=[directory]))
        code: int = answer.results[0].partitions[0].error_code
        return code

    assert moved(f"{tmp_path}/a") == ErrorCode.NONE
    assert moved(f"{tmp_path}/b") == ErrorCode.NONE
    for _ in range(5_000):
        if logs_in(tmp_path)["b"] == ["t-0"]:
            break
        node.loop.run_until_complete(asyncio.sleep(0.001))
    assert (node.assigned("t"), node.described()["b"]) == ("b", ["t", "u"])
    assert moved(f"{tmp_path}/d") == ErrorCode.LOG_DIR_NOT_FOUND
    node.close()


def test_of_a_log_in_two_directories_the_metadata_names_one(tmp_path: Path) -> None:
    node = Several(tmp_path)
    node.create_topic("t1")
    produce(node, "t1", b"once")
    node.close()
    shutil.copytree(tmp_path / "a" / "t1-0", tmp_path / "c" / "t1-0")
    again = Several(tmp_path, seed=2)
    assert b"once" in fetched(again, "t1")
    assert again.described()["a"] == ["t1"]
    assert logs_in(tmp_path) == {"a": ["t1-0"], "b": [], "c": []}
    assert [path.name.rpartition("-")[2] for path in (tmp_path / "c").glob("t1-0.*")] == ["stray"]
    again.close()


def test_a_directory_that_was_not_stopped_takes_the_claim_of_a_clean_stop_away(tmp_path: Path) -> None:
    Several(tmp_path).close()
    (tmp_path / "c" / ".kafka_cleanshutdown").unlink()
    (tmp_path / "c" / ".barnabas_running").unlink(missing_ok=True)
    node = Several(tmp_path)
    directories = node.node.log_manager.directories
    assert [each.had_clean_shutdown for each in directories] == [True, True, False]
    node.close()
