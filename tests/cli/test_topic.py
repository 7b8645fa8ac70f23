"""What `topic describe` shows of eligible leader replicas and of partitions without a leader."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from barnabas.cli.topic import _explain_leaderless, _partition_table, alter, create, list_
from barnabas.client.admin import CreatedTopic, PartitionDescription, PartitionMetadata, TopicMetadata, TopicPartition
from barnabas.protocol.primitives import ZERO_UUID
from tests.cli.made_up_cluster import MadeUpAdmin, pretend

LED = PartitionDescription(1, 3, [1, 2], [1], [], [], [])
LOST = PartitionDescription(-1, 4, [2, 1], [], [2], [2], [2])


def topic(*partitions: PartitionDescription) -> tuple[TopicMetadata, dict[TopicPartition, PartitionDescription]]:
    shown = [
        PartitionMetadata(index, each.leader, each.leader_epoch, each.replicas, each.isr, each.offline)
        for index, each in enumerate(partitions)
    ]
    details = {TopicPartition("t", index): each for index, each in enumerate(partitions)}
    return TopicMetadata("t", ZERO_UUID, False, shown), details


def test_eligible_leader_replicas_are_columns_where_there_are_some() -> None:
    table = _partition_table(*_with_offsets(LED), everything=False)
    assert "ELR" not in table.columns
    assert [len(row) for row in table.rows] == [len(table.columns)]
    table = _partition_table(*_with_offsets(LED, LOST), everything=False)
    assert [row[4:7] for row in table.rows] == [([1], [], []), ([], [2], [2])]
    assert table.columns[4:7] == ("ISR", "ELR", "LAST-KNOWN-ELR")


def test_json_always_has_them() -> None:
    (row,) = _partition_table(*_with_offsets(LED), everything=True).objects()
    assert (row["elr"], row["last_known_elr"]) == ([], [])
    # A topic that was created in between.
    metadata, _ = topic(LED)
    (row,) = _partition_table(metadata, {}, {}, everything=True).objects()
    assert (row["elr"], row["last_known_elr"], row["high_watermark"]) == ([], [], None)


def test_partitions_without_a_leader_are_explained_in_one_line_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    _, details = topic(LED, *([LOST] * 7), LOST._replace(elr=[]))
    _explain_leaderless(details, [1])
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("no leader: t-1, t-2, t-3, t-4, t-5 and 2 more: eligible leader replica 2 is offline, and ")
    assert second.startswith(
        "no leader: t-8: last known leader 2 is offline, and replica 1 may lack records; start broker 2, or "
    )


def test_a_pattern_that_matches_no_whole_name_is_said_to_match_none() -> None:
    def said(*patterns: str) -> str:
        with pretend():
            return CliRunner().invoke(list_, patterns).stderr

    assert said("ord") == "no topic's whole name matches ord: names that begin with ord match 'ord.*'\n"
    assert said("ord*") == "no topic's whole name matches ord*: names that begin with ord match 'ord.*'\n"
    assert said("(x|y).+") == "no topic's whole name matches (x|y).+\n"
    assert said("ord.*") == said("ord", "pay.*") == ""


def test_more_partitions_move_keys() -> None:
    with pretend():
        assert CliRunner().invoke(alter, ["orders", "-c", "retention.ms=1"]).stderr == ""
        said = CliRunner().invoke(alter, ["orders", "-p", "12"]).stderr
    assert said == "keys map to other partitions when there are more: a key's old and new records may be in two\n"


def _with_offsets(
    *partitions: PartitionDescription,
) -> tuple[TopicMetadata, dict[TopicPartition, tuple[int, int]], dict[TopicPartition, PartitionDescription]]:
    metadata, details = topic(*partitions)
    return metadata, {TopicPartition("t", 0): (0, 1)}, details


def test_topics_that_one_broker_less_stops_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {name: CreatedTopic(name, ZERO_UUID, 1, 2, {"min.insync.replicas": "2"}) for name in "ab"}
    monkeypatch.setattr(MadeUpAdmin, "create_topics", lambda *_, **__: made)
    with pretend():
        found = CliRunner().invoke(create, ["a", "b"])
    assert found.stderr.startswith("warning: topics a, b have no more replicas than min.insync.replicas")
