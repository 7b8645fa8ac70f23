"""A node with cordoned directories: where replicas go, what the controller and clients see, and which changes the broker rejects."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterReplicaLogDirsRequest,
    DescribeLogDirsRequest,
    IncrementalAlterConfigsRequest,
)
from tests.node.several_directories import Several

SET, DELETE, APPEND, SUBTRACT = range(4)
SETTING = "cordoned.log.dirs"


def alter(node: Several, value: str | None, operation: int = SET) -> tuple[int, str]:
    """Change the setting of this broker; return the code and the message."""
    request = IncrementalAlterConfigsRequest
    config = request.AlterableConfig(name=SETTING, config_operation=operation, value=value)
    resource = request.AlterConfigsResource(
        resource_type=4, resource_name=str(node.server.config.node_id), configs=[config]
    )
    (answer,) = node.ask(request(resources=[resource])).responses
    return answer.error_code, answer.error_message or ""


def cordoned(node: Several) -> list[str]:
    """Return the directories that DescribeLogDirs has as cordoned."""
    answer = node.ask(DescribeLogDirsRequest(topics=[]))
    return [Path(each.log_dir).name for each in answer.results if each.is_cordoned]


def known(node: Several, count: int) -> None:
    """Wait until the metadata has so many cordoned directories of this broker."""
    for _ in range(5_000):
        if len(node.server.image.cluster.brokers[node.server.config.node_id].cordoned_directories) == count:
            return
        node.loop.run_until_complete(asyncio.sleep(0.001))
    raise AssertionError(f"the controller does not know {count} cordoned directories")


def moved(node: Several, path: str) -> int:
    request = AlterReplicaLogDirsRequest
    topic = request.AlterReplicaLogDirTopic(name="first", partitions=[0])
    answer = node.ask(request(dirs=[request.AlterReplicaLogDir(path=path, topics=[topic])]))
    code: int = answer.results[0].partitions[0].error_code
    return code


def test_new_replicas_go_into_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    node = Several(tmp_path)
    node.create_topic("first")
    assert node.assigned("first") == "a"
    with caplog.at_level(logging.INFO):
        assert alter(node, f"{tmp_path}/b") == (0, "")
    assert f"The data directory {tmp_path}/b gets no new replica" in caplog.text
    known(node, 1)
    assert cordoned(node) == ["b"]
    for name in ("t1", "t2", "t3"):
        node.create_topic(name)
    assert [node.assigned(name) for name in ("t1", "t2", "t3")] == ["c", "a", "c"]
    assert moved(node, f"{tmp_path}/b") == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert alter(node, None, DELETE) == (0, "")
    known(node, 0)
    node.create_topic("t4")
    assert (cordoned(node), node.assigned("t4")) == ([], "b")
    node.close()


def test_a_static_value_counts_until_a_dynamic_one_is_set(tmp_path: Path) -> None:
    node = Several(tmp_path, cordoned_log_dirs=f"{tmp_path}/a,{tmp_path}/c")
    known(node, 2)
    node.create_topic("t")
    assert (cordoned(node), node.assigned("t")) == (["a", "c"], "b")
    assert alter(node, "") == (0, "")
    known(node, 0)
    node.create_topic("u")
    assert (cordoned(node), node.assigned("u")) == ([], "a")
    node.close()


def test_a_broker_without_another_directory_gets_no_replica(tmp_path: Path) -> None:
    node = Several(tmp_path)
    node.create_topic("before")
    assert alter(node, "*") == (0, "")
    known(node, 3)
    with pytest.raises(AssertionError):
        node.create_topic("after")
    # A restart brings nothing back.
    node.close()
    again = Several(tmp_path, seed=2)
    known(again, 3)
    assert cordoned(again) == ["a", "b", "c"]
    again.close()


def test_lists_are_changed_and_checked(tmp_path: Path) -> None:
    node = Several(tmp_path)
    assert alter(node, f"{tmp_path}/a", APPEND) == (0, "")
    known(node, 1)
    assert alter(node, f"{tmp_path}/c", APPEND) == (0, "")
    known(node, 2)
    code, message = alter(node, f"{tmp_path}/d", APPEND)
    assert (code, message.endswith(f"Missing entries : {tmp_path}/d")) == (ErrorCode.INVALID_REQUEST, True)
    code, message = alter(node, "*", APPEND)
    assert (code, "must not contain other values" in message) == (ErrorCode.INVALID_REQUEST, True)
    assert alter(node, f"{tmp_path}/a", SUBTRACT) == (0, "")
    known(node, 1)
    assert cordoned(node) == ["c"]
    node.close()
