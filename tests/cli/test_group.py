"""The summary of `barnabas group describe`, from a cluster in memory."""

from barnabas.cli.group import _summary
from tests.cli.test_group_lag import group, rows


def test_a_group_without_members_says_what_its_lag_does_not_count() -> None:
    found = rows(group("consumer"))
    assert [(row[1], row[5]) for row in found] == [(0, 3), (1, None), (2, None), (3, None)]
    total = "3 (not counted: 2 partitions without a commit, 1 partition of unknown lag)"
    assert _summary(group("consumer"), found).objects()[0]["total_lag"] == total
