"""Points resolve within a partition."""

import pytest

from barnabas.client.log_points import Anchor, Point


@pytest.mark.parametrize(
    ("point", "offset"),
    [
        (Point(Anchor.START), 10),
        (Point(Anchor.END), 20),
        (Point(Anchor.EXACT, 5), 5),
        (Point(Anchor.START, 3), 13),
        (Point(Anchor.START, 99), 20),
        (Point(Anchor.END, 3), 17),
        (Point(Anchor.END, 99), 10),
        (Point(Anchor.TIME, 1), 12),
    ],
)
def test_points_in_a_partition_from_10_to_20(point: Point, offset: int) -> None:
    assert point.resolve(10, 20, 12) == offset


def test_a_time_after_all_records_is_the_end() -> None:
    assert Point(Anchor.TIME, 1).resolve(10, 20, None) == 20


@pytest.mark.parametrize(
    ("text", "point"),
    [("47", Point(Anchor.EXACT, 47)), ("+2", Point(Anchor.START, 2)), ("-3", Point(Anchor.END, 3))],
)
def test_a_number_as_users_write_it(text: str, point: Point) -> None:
    assert Point.of_number(text) == point


@pytest.mark.parametrize("text", ["", "-", "1.5", "-1h", "@1", "\u0663"])
def test_another_text_is_no_number(text: str) -> None:
    assert Point.of_number(text) is None
