"""Rebalances as a picture: places, words, and what hostile names become."""

from __future__ import annotations

from barnabas.client.groups import GroupRebalance, MovedPartition
from barnabas.console.rebalance_timeline import (
    BARS,
    COLUMNS_MAX,
    LANES_MAX,
    Column,
    Lane,
    Mark,
    rebalance_timeline,
)

BEGAN_MS = 1_795_000_000_000
W1, W2 = "w1-6fe42f54-bd34-4c0e-9a51-3a1c7be1e0a4", "w2-2cd913f9-a26e-498e-b7e7-38aa09fbe0ce"


def rebalance(
    epoch: int,
    member: str = W1,
    took_ms: int | None = 1000,
    moved: list[MovedPartition] | None = None,
    client: str = "",
    superseded: bool = False,
) -> GroupRebalance:
    started = BEGAN_MS + 60_000 * epoch
    ended = None if took_ms is None else started + took_ms
    return GroupRebalance(epoch, f"member {member} joined", member, client, started, ended, superseded, 2, moved or [])


def test_no_rebalance_has_no_picture() -> None:
    assert rebalance_timeline([]) is None


def test_columns_lanes_and_what_moved() -> None:
    first = [MovedPartition("orders", each, "", W1) for each in range(3)]
    second = [MovedPartition("orders", 2, W1, W2)]
    found = rebalance_timeline(
        [rebalance(1, moved=first, took_ms=3000, client="billing"), rebalance(2, W2, 300, second), rebalance(3, took_ms=None)]
    )  # fmt: skip
    assert found is not None
    assert found.columns == [
        Column(212.0, 1, BARS, "3.0 s", "11:07:40", f"member {W1} joined", True),
        Column(296.0, 2, 7.0, "300 ms", "11:08:40", f"member {W2} joined", True),
        Column(380.0, 3, BARS, "goes on", "11:09:40", f"member {W1} joined", False),
    ]
    assert found.lanes == [
        Lane(134, "billing", W1, [Mark(212.0, "+3", True), Mark(296.0, "−1", False), Mark(380.0, "", True)]),
        Lane(160, f"{W2[:21]}…", W2, [Mark(296.0, "+1", True)]),
    ]
    assert found.described == (
        "3 rebalances from 2026-11-18T11:07:40.000Z to 2026-11-18T11:09:40.000Z; 4 partitions moved. "
        f"The longest, epoch 1, took 3.0 s: member {W1} joined."
    )


def test_a_superseded_one_says_so_and_a_busy_client_is_named() -> None:
    found = rebalance_timeline([rebalance(1, client="billing", superseded=True), rebalance(2, client="billing")])
    assert found is not None
    assert [each.took for each in found.columns] == ["superseded", "1.0 s"]
    assert found.described.endswith("Client billing caused 2 of them.")


def test_only_the_last_ones_and_the_first_members_are_drawn() -> None:
    found = rebalance_timeline([rebalance(each, f"member-{each}") for each in range(40)])
    assert found is not None
    assert [each.epoch for each in found.columns] == list(range(40 - COLUMNS_MAX, 40))
    assert len(found.lanes) == LANES_MAX == COLUMNS_MAX
    moved = [MovedPartition("orders", each, "", f"idle-{each}") for each in range(20)]
    found = rebalance_timeline([rebalance(1, moved=moved)])
    assert found is not None
    assert found.described.endswith("The table has 9 more members.")


def test_hostile_names_drive_nothing() -> None:
    found = rebalance_timeline([rebalance(1, "<script>\x1b[2J", client="\u202e<b>")])
    assert found is not None
    assert (found.lanes[0].name, found.lanes[0].title) == ("\\u202e<b>", "<script>\\x1b[2J")
    assert "\x1b" not in found.described + found.columns[0].title
