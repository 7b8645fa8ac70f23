"""How fast a group catches up."""

from barnabas.console.chart import Point
from barnabas.console.group_pace import Pace, found_pace, lag_words, pace_of, words_of

NOW_MS = 100_000


def points(*lags: float | None, begins: int = 0) -> list[Point]:
    """Return looks five seconds apart, the last one now."""
    first = NOW_MS - 5_000 * (len(lags) - 1)
    return [Point(first + 5_000 * index, lag, index == begins) for index, lag in enumerate(lags)]


def test_a_group_that_catches_up() -> None:
    pace = pace_of(points(400, 390, 300), NOW_MS)
    assert pace == Pace(300, -10.0, 10.0)
    assert pace.drained_in_s == 30.0
    assert words_of(pace).startswith("The group catches up")
    assert found_pace(9, 7, pace).data == {
        "lag": 9,
        "lag_to_last_stable_offset": 7,
        "lag_change_per_sec": -10.0,
        "window_s": 10.0,
        "drained_in_s": 30.0,
    }


def test_a_group_that_does_not() -> None:
    grows, stays, done = (pace_of(points(*lags), NOW_MS) for lags in ((10, 20), (10, 10), (10, 0)))
    assert grows is not None
    assert stays is not None
    assert done is not None
    assert [each.drained_in_s for each in (grows, stays, done)] == [None, None, 0.0]
    assert [words_of(each) for each in (grows, stays, done)] == [
        "The group does not catch up: its lag grows.",
        "The group does not catch up: its lag stays as it is.",
        "The group has read everything in the last look.",
    ]


def test_only_looks_of_one_line_and_of_the_last_minute_count() -> None:
    assert pace_of(points(900, 100, 90, begins=1), NOW_MS) == Pace(90, -2.0, 5.0)
    assert pace_of(points(900, None, 100, 90), NOW_MS) == Pace(90, -2.0, 5.0)
    assert pace_of(points(*range(100, 80, -1)), NOW_MS) == Pace(81, -0.2, 60.0)


def test_a_pace_that_is_not_known() -> None:
    for known in ([], points(5), points(5, None), points(5, 4, begins=1)):
        assert pace_of(known, NOW_MS) is None
    assert pace_of(points(5, 4), NOW_MS + 60_001) is None
    assert words_of(None).startswith("How fast the lag changes is not known")
    assert set(found_pace(0, None, None).data.values()) == {0, None}


def test_what_the_two_lags_say() -> None:
    assert lag_words("consumer", 5, 5) is None
    assert lag_words("consumer", 0, None) is None
    assert lag_words("classic", 5, 4) == "Open transactions hold back 1 record from readers of committed records."
    known, unknown = lag_words("share", 5, 4), lag_words("share", 5, None)
    assert known is not None
    assert unknown is not None
    assert known.startswith("The lag of a share group counts the records that are not finished")
    assert "it can read only with" in known
    assert "it is not known" in unknown
