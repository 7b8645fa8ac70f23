"""The summary of `barnabas group describe`, from a cluster in memory."""

import pytest

from barnabas.cli.group import _summary, described_group
from barnabas.client.admin import GroupMember, TopicPartition
from barnabas.client.group_descriptions import Subtopology
from tests.cli.test_group_lag import FakeAdmin, group, rows


def test_a_group_without_members_says_what_its_lag_does_not_count() -> None:
    found = rows(group("consumer"))
    assert [(row[1], row[5]) for row in found] == [(0, 3), (1, None), (2, None), (3, None)]
    total = "3 (not counted: 2 partitions without a commit, 1 partition of unknown lag)"
    assert _summary(group("consumer"), found).objects()[0]["total_lag"] == total


def test_epochs_targets_and_subtopologies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cli.group.held_from", lambda admin, found: [])
    here, there = TopicPartition("t", 0), TopicPartition("t", 1)
    members = [
        GroupMember("m", None, "c", "/h", [here], 4, [here, there]),
        GroupMember("n", None, "c", "/h", [], 5, []),
    ]
    app = group("streams", *members)._replace(
        epoch=5, assignment_epoch=5, subtopologies=[Subtopology("0", ["t"], [], ["r"], ["c"])]
    )
    found = described_group(FakeAdmin(), app, with_members=True, with_partitions=False)  # type: ignore[arg-type]
    assert (found.data["group_epoch"], found.data["target_assignment_epoch"]) == (5, 5)
    assert [(each["epoch"], each["target_assignment"]) for each in found.data["members_list"]] == [
        (4, ["t-0", "t-1"]),
        (5, None),
    ]
    assert found.data["subtopologies"] == [
        {
            "subtopology": "0",
            "sources": ["t"],
            "repartition_sources": [],
            "repartition_sinks": ["r"],
            "changelogs": ["c"],
        }
    ]
    old = group("classic", members[1]._replace(epoch=None, target=None))
    classic = described_group(FakeAdmin(), old, with_members=True, with_partitions=False)  # type: ignore[arg-type]
    assert "group_epoch" not in classic.data
    assert "epoch" not in classic.data["members_list"][0]
