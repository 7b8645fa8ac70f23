import pytest

from barnabas.cli.offset_grammar import END, START, Range, parse_offsets
from barnabas.client.log_points import Anchor, Point

NOW = 1_800_000_000_000
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((), Range(START)),
        (("start",), Range(START)),
        (("beginning",), Range(START)),
        (("end",), Range(END)),
        (("47",), Range(Point(Anchor.EXACT, 47))),
        (("+2",), Range(Point(Anchor.START, 2))),
        (("-3",), Range(Point(Anchor.END, 3))),
        ((":end",), Range(START, END)),
        (("5:7",), Range(Point(Anchor.EXACT, 5), Point(Anchor.EXACT, 7))),
        (("-5:end",), Range(Point(Anchor.END, 5), END)),
        (("@1733000000000",), Range(Point(Anchor.TIME, 1_733_000_000_000))),
        (("@-1h",), Range(Point(Anchor.TIME, NOW - HOUR))),
        (("@-2h:-1h",), Range(Point(Anchor.TIME, NOW - 2 * HOUR), Point(Anchor.TIME, NOW - HOUR))),
        (("@-2h:@-1h",), Range(Point(Anchor.TIME, NOW - 2 * HOUR), Point(Anchor.TIME, NOW - HOUR))),
        (("@-2h:end",), Range(Point(Anchor.TIME, NOW - 2 * HOUR), END)),
        (("@2026-11-21T10:00:00",), Range(Point(Anchor.TIME, 1_795_255_200_000))),
        (
            ("@2026-11-21T10:00:00:2026-11-21T11:00:00",),
            Range(Point(Anchor.TIME, 1_795_255_200_000), Point(Anchor.TIME, 1_795_258_800_000)),
        ),
        (("s@1500",), Range(Point(Anchor.TIME, 1500))),
        (("e@2500", "s@1500"), Range(Point(Anchor.TIME, 1500), Point(Anchor.TIME, 2500))),
        (("e@2500",), Range(START, Point(Anchor.TIME, 2500))),
    ],
)
def test_offsets(texts: tuple[str, ...], expected: Range) -> None:
    assert parse_offsets(texts, NOW) == expected


@pytest.mark.parametrize("texts", [("",), ("someday",), ("1:",), ("@",), ("--3",), ("1", "2"), ("s@1", "s@2"), ("²",)])
def test_no_offsets(texts: tuple[str, ...]) -> None:
    with pytest.raises(ValueError):
        parse_offsets(texts, NOW)


@pytest.mark.parametrize(
    ("text", "meant"),
    [("-1h", "@-1h"), ("-2h:-1h", "@-2h:-1h"), ("2026-11-21", "@2026-11-21"), (":-1h", "@-1h")],
)
def test_a_time_without_its_sign_is_answered_with_what_to_write(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"is not a valid offset: for a time write {meant}$"):
        parse_offsets((text,), NOW)
