"""Where reading begins and ends has one grammar: the Spark source's, with the points of the command line."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from barnabas.arrow.positions import parse_place
from barnabas.client.log_points import Anchor, Point
from barnabas.spark.source.offsets import ByCut, ByGroup, ByTimestamp, Earliest, Latest, Specific

NOW_MS = 1_763_712_000_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("place", "meant"),
    [
        ("earliest", Earliest()),
        ("start", Earliest()),
        (" Beginning ", Earliest()),
        ("latest", Latest()),
        ("end", Latest()),
        ("-1h", ByTimestamp(NOW_MS - HOUR_MS)),
        ("@-1h", ByTimestamp(NOW_MS - HOUR_MS)),
        ("@1763712000000", ByTimestamp(1_763_712_000_000)),
        ("2025-11-21T08:00", ByTimestamp(NOW_MS)),
        (datetime(2025, 11, 21, 8), ByTimestamp(NOW_MS)),
        (datetime(2025, 11, 21, 8, tzinfo=UTC), ByTimestamp(NOW_MS)),
        ("group:checkout", ByGroup("checkout")),
        ("cut:monday", ByCut("monday")),
        (47, Point(Anchor.EXACT, 47)),
        ("47", Point(Anchor.EXACT, 47)),
        ("+2", Point(Anchor.START, 2)),
        ("-3", Point(Anchor.END, 3)),
        ({0: 5, 1: -1}, Specific({("orders", 0): 5, ("orders", 1): -1})),
        ({"sales": {0: 5}}, Specific({("sales", 0): 5})),
        ('{"sales": {"0": 5}}', Specific({("sales", 0): 5})),
    ],
)
def test_each_form(place, meant):
    assert parse_place(place, ["orders"], NOW_MS) == meant


@pytest.mark.parametrize(
    "place", ["someday", "", "@", "--3", "group:", -1, True, 1.5, {0: "x"}, {"orders": {0: -3}}, {-1: 0}]
)
def test_what_is_no_place(place):
    with pytest.raises(ValueError):
        parse_place(place, ["orders"], NOW_MS)


def test_offsets_by_partition_alone_do_not_fit_two_topics():
    with pytest.raises(ValueError, match="fit one topic"):
        parse_place({0: 5}, ["orders", "payments"], NOW_MS)
