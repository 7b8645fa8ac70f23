"""One shard's life: simple groups, failover, resignation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.group.group_shard import GroupCoordinatorShard
from barnabas.group.offset_records import offset_commit_record
from barnabas.group.offset_store import OffsetAndMetadata
from barnabas.protocol import messages
from barnabas.records.builder import build_batch
from barnabas.records.control import build_end_transaction_marker
from tests.group.script import ScriptRunner
from tests.group.scripts_of import name_of, play, scripts_of


@pytest.mark.parametrize("path", scripts_of("group_shard"), ids=name_of)
def test_script(path: Path) -> None:
    play(path)


def shard_of(host: Any) -> GroupCoordinatorShard:
    shard: GroupCoordinatorShard = host.shard()
    return shard


def test_a_loaded_group_that_is_over_capacity_rebalances() -> None:
    runner = ScriptRunner()
    runner.run("> join a version=3\n> join b version=3\n> advance 9s\n> sync a a=t0 b=t1\n")
    runner.config["group_max_size"] = 1
    runner.do_restart()
    assert [group.state.value for group in runner_groups(runner)] == ["PreparingRebalance"]
    played = runner.run("> join a\n> join b\n> advance 60s\n> describe g\n")
    assert "b: join GROUP_MAX_SIZE_REACHED" in played
    assert "a: join NONE generation=2" in played


def runner_groups(runner: ScriptRunner) -> list[Any]:
    assert runner.coordinator is not None
    return list(shard_of(runner).groups.values())


def test_pending_offsets_of_a_loaded_transaction_are_unstable() -> None:
    runner = ScriptRunner()
    runner.run("> commit - t:0=1\n")
    offset = OffsetAndMetadata(committed_offset=2, leader_epoch=-1, metadata="", commit_timestamp_ms=0)
    fields = [(0, *runner.serde.encode(offset_commit_record("g", "t", 0, offset)), [])]
    batch = build_batch(fields, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    runner.log.append(0, batch)
    runner.run("> failover\n")
    assert "fetch NONE t:0=-1 UNSTABLE_OFFSET_COMMIT" in runner.run("> fetch t:0 stable\n")
    assert "fetch NONE t:0=1" in runner.run("> fetch t:0\n")
    marker = build_end_transaction_marker(
        commit=True, coordinator_epoch=0, producer_id=5, producer_epoch=0, timestamp=0
    )
    runner.log.append(0, marker)
    runner.run("> failover\n")
    assert "fetch NONE t:0=2" in runner.run("> fetch t:0 stable\n")


def test_records_of_newer_group_types_are_left_alone() -> None:
    runner = ScriptRunner()
    key, value = b"\x00\x63" + b"\x00\x03new", b"\x00\x00\x00\x00"
    runner.log.append(0, build_batch([(0, key, value, [])]))
    assert "list NONE\n" in runner.run("> list\n")


def test_offsets_of_the_oldest_type_are_read() -> None:
    runner = ScriptRunner()
    key = b"\x00\x00" + messages.LegacyOffsetCommitKey(group="g", topic="t", partition=0).encode(0)
    value = b"\x00\x00" + messages.LegacyOffsetCommitValue(offset=4, metadata="m", commit_timestamp=9).encode(0)
    runner.log.append(0, build_batch([(0, key, value, [])]))
    assert "fetch NONE t:0=4(m)" in runner.run("> fetch all\n")


def test_a_shard_whose_groups_consume_nothing_does_not_look_at_changed_topics() -> None:
    class Unread(list[str]):
        def __iter__(self) -> Any:
            raise AssertionError("ten thousand names for each of fifty shards")

    runner = ScriptRunner()
    runner.run("> join a version=3\n")
    shard = shard_of(runner)
    shard.on_topics_changed(Unread(["t"]), has_new=False)
    shard.environment.subscribers.add("g", "t")
    with pytest.raises(AssertionError, match="ten thousand"):
        shard.on_topics_changed(Unread(["t"]), has_new=False)
