"""Commits of offsets within a transaction: which members may commit, and the error of each version of TxnOffsetCommit."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import TxnOffsetCommitRequest
from tests.group.consumer_script import ConsumerScriptRunner
from tests.group.script import ScriptRunner

Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
Partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition


def commit(runner: ScriptRunner, member_id: str = "", epoch: int = -1, version: int = 6, **fields: Any) -> Any:
    """Commit offset 7 + n of each partition n of `t`; returns the error codes, or the error of the whole."""
    request = TxnOffsetCommitRequest(
        group_id="g",
        producer_id=5,
        producer_epoch=0,
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[
            Topic(
                name="t",
                topic_id=runner.topic_id("t"),
                partitions=[
                    Partition(partition_index=index, committed_offset=7 + index, committed_metadata="")
                    for index in (0, 1)
                ],
            )
        ],
        **fields,
    )
    answer = runner.coordinator.commit_transactional_offsets(request, version, None)
    runner.loop.run_ready()
    try:
        (topic,) = answer.result().topics
    except KafkaError as error:
        return error.code
    assert topic.name == "t"
    return {partition.partition_index: partition.error_code for partition in topic.partitions}


ACCEPTED = {0: 0, 1: 0}


def test_a_producer_that_names_no_member_commits_to_a_missing_group() -> None:
    runner = ScriptRunner()
    assert commit(runner) == ACCEPTED
    assert "t:0=-1 UNSTABLE_OFFSET_COMMIT" in runner.run("> fetch t:0 stable\n"), "it is pending"


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_a_missing_group_is_rejected(epoch: int, version: int, code: ErrorCode) -> None:
    runner = ScriptRunner()
    assert commit(runner, "m", epoch, version) is code
    assert not runner.log.batches.get(0)


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.STALE_MEMBER_EPOCH)])
def test_a_member_of_a_consumer_group_commits_at_its_epoch(version: int, code: ErrorCode) -> None:
    runner = ConsumerScriptRunner()
    runner.run("> topic t 2\n> beat a\n")
    epoch = runner.clients["a"].generation_id
    assert commit(runner, "a", epoch, version) == ACCEPTED
    assert commit(runner, "a", epoch + 1, version) is code
    assert commit(runner, "a", epoch - 1, version) is code, "its partitions were assigned later"
    assert commit(runner, "stranger", epoch, version) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(runner, "", -1, version) == ACCEPTED, "an old producer names no member"


def test_an_older_epoch_is_accepted_for_partitions_that_were_assigned_by_then() -> None:
    runner = ConsumerScriptRunner()
    runner.run("> topic t 2\n> topic u 1\n> beat a\n> beat a topics=t,u owned=all\n")
    epoch = runner.clients["a"].generation_id
    assert commit(runner, "a", epoch - 1) == ACCEPTED


def test_a_member_of_a_classic_group_commits_at_its_generation() -> None:
    runner = ScriptRunner()
    runner.run("> join a instance=i\n> advance 3s\n> sync a a=t0\n")
    a = runner.clients["a"]
    assert commit(runner, a.member_id, 1, group_instance_id="i") == ACCEPTED
    assert commit(runner, a.member_id, 0) is ErrorCode.ILLEGAL_GENERATION
    assert commit(runner, "stranger", 1, group_instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert commit(runner, "stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transaction_may_commit_between_a_join_and_its_sync() -> None:
    runner = ScriptRunner()
    runner.run("> join a version=3\n> advance 3s\n")
    assert commit(runner, runner.clients["a"].member_id, 1) == ACCEPTED
    assert "REBALANCE_IN_PROGRESS" in runner.run("> commit a t:0=1\n"), "a plain commit may not"


def test_a_deleted_group_loses_its_pending_offsets() -> None:
    runner = ScriptRunner()
    runner.run("> commit - t:0=1\n")
    commit(runner)
    played = runner.run("> delete g\n")
    assert "delete g=NONE" in played
    assert [line for line in played.splitlines() if line.endswith("-> gone") and "offset" in line] == [
        "log offset g t:0 -> gone",
        "log offset g t:1 -> gone",
    ]


def test_neither_a_pending_offset_nor_its_group_expires() -> None:
    runner = ScriptRunner()
    runner.run("> commit - t:0=1 u:0=1\n")
    commit(runner)
    played = runner.run("> advance 9d\n")
    assert "log offset g u:0 -> gone" in played
    assert "log offset g t:0 -> gone" not in played
    assert "g" in runner.shard().groups


def test_a_group_with_only_pending_offsets_stays() -> None:
    runner = ScriptRunner()
    commit(runner)
    runner.run("> advance 9d\n")
    assert "g" in runner.shard().groups


def test_a_deleted_pending_offset_is_not_committed_later() -> None:
    runner = ScriptRunner()
    commit(runner)
    played = runner.run("> offset-delete t:1 t:2\n")
    assert "log offset g t:1 -> gone" in played
    assert "t:2 -> gone" not in played, "it was never there"
    assert "t:0=-1 UNSTABLE_OFFSET_COMMIT" in runner.run("> fetch t:0 stable\n")
    assert "UNSTABLE" not in runner.run("> fetch t:1 stable\n")
