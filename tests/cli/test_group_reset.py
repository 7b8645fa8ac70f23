"""Plans of new offsets without a broker, and the group that they are for."""

from typing import Any

import pytest
from click.testing import CliRunner

from barnabas.cli.group_reset import Place, plan, read_plan, reset_offsets
from barnabas.client.admin import OffsetAndTimestamp, TopicPartition
from tests.cli.made_up_cluster import pretend

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
PLACES = {T0: Place(10, 20, 15), T1: Place(0, 5, None)}


class Times:
    """Answers look-ups by time: the record at offset 12 is from 1000, partition 1 has older ones only."""

    def list_offsets(self, timestamps: dict[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        self.asked = set(timestamps.values())
        return {T0: OffsetAndTimestamp(12, 1000, 0), T1: OffsetAndTimestamp(-1, -1, -1)}


@pytest.mark.parametrize(
    ("how", "value", "offsets"),
    [
        ("--to-earliest", True, [10, 0]),
        ("--to-latest", True, [20, 5]),
        ("--to-current", True, [15, 5]),
        ("--to-offset", 12, [12, 5]),
        ("--to-offset", 3, [10, 3]),
        ("--to-datetime", "1970-01-01T00:00:01", [12, 5]),
        ("--by-duration", "PT1S", [12, 5]),
    ],
)
def test_plans(how: str, value: Any, offsets: list[int]) -> None:
    times = Times()
    assert list(plan(times, how, value, PLACES, 2000).values()) == offsets  # type: ignore[arg-type]
    if how in ("--to-datetime", "--by-duration"):
        assert times.asked == {1000}


def test_shifts_stay_within_the_log() -> None:
    only = {T0: PLACES[T0]}
    for shift, offset in ((2, 17), (-3, 12), (99, 20), (-99, 10)):
        assert plan(Times(), "--shift-by", shift, only, 0) == {T0: offset}  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no offset in t-1 to shift"):
        plan(Times(), "--shift-by", 1, PLACES, 0)  # type: ignore[arg-type]


def test_reads_what_export_prints() -> None:
    assert read_plan(["t,0,5\n", "\n", "t, 1 ,7\n"]) == {T0: 5, T1: 7}
    for bad in ("t,0", "t,zero,1", "t,0,1,2"):
        with pytest.raises(ValueError, match="line 2 is not topic,partition,offset"):
            read_plan(["t,0,5", bad])


def test_a_mistyped_group_is_not_created() -> None:
    def said(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(reset_offsets, [*words, "--topic", "orders:0", "--to-latest"])
        return result.exit_code, result.stderr

    with pretend():
        refused = "error: group quite does not exist; did you mean quiet? (--new-group creates it)\n"
        assert said("quite", "--execute") == (1, refused)
        assert said("quite", "--execute", "--new-group") == (0, "group quite is new\n")
        assert said("billing", "--execute") == (0, "group billing is new\n")
        assert said("quiet", "--execute") == (0, "")
