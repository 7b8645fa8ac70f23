"""A result is a table, JSON or CSV; the latter two are printed while the rows arrive."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from barnabas.cli.result_rows import TABLE_ROWS, CsvRows, JsonRows, TableRows

MOMENT = datetime(2026, 11, 21, 8, tzinfo=UTC)
VALUES = [
    ("number", 1, "BIGINT", 1, "1"),
    ("sum", Decimal("2.50"), "DECIMAL(5,2)", 2.5, "2.50"),
    ("whole", Decimal(3), "HUGEINT", 3, "3"),
    ("not_finite", float("nan"), "DOUBLE", "nan", "nan"),
    ("absent", None, "VARCHAR", None, ""),
    ("moment", MOMENT, "TIMESTAMP WITH TIME ZONE", "2026-11-21T08:00:00Z", "2026-11-21T08:00:00Z"),
    ("day", date(2026, 11, 21), "DATE", "2026-11-21", "2026-11-21"),
    ("interval", timedelta(hours=1), "INTERVAL", "1:00:00", "1:00:00"),
    ("bytes", b"\xff", "BLOB", "/w==", "/w=="),
    ("text_bytes", b"a", "BLOB", "a", "a"),
    ("json", '{"a": [1]}', "JSON", {"a": [1]}, '{"a": [1]}'),
    ("list", [{"key": "shop", "value": b"1"}], "STRUCT[]", [{"key": "shop", "value": "1"}], '[{"key": "shop", "value": "1"}]'),
]  # fmt: skip
COLUMNS = [name for name, *_ in VALUES]
TYPES = [each[2] for each in VALUES]
PAGES = [[tuple(each[1] for each in VALUES)]]


def test_json(capsys):
    JsonRows().pages(COLUMNS, TYPES, PAGES * 2)
    assert json.loads(capsys.readouterr().out) == [{name: shown for name, _, _, shown, _ in VALUES}] * 2


def test_csv(capsys):
    CsvRows().pages(COLUMNS, TYPES, PAGES)
    assert list(csv.reader(io.StringIO(capsys.readouterr().out))) == [COLUMNS, [each[4] for each in VALUES]]


def test_no_rows(capsys):
    JsonRows().pages(COLUMNS, TYPES, [])
    assert json.loads(capsys.readouterr().out) == []
    CsvRows().pages(["a"], ["INTEGER"], [])
    TableRows().pages(["a"], ["INTEGER"], [])
    assert capsys.readouterr().out == "a\na\n"


def test_rows_leave_before_the_next_page_is_made(capsys):
    def pages():
        yield [(1,)]
        assert capsys.readouterr().out
        yield [(2,)]

    for output in (JsonRows(), CsvRows()):
        output.pages(["a"], ["INTEGER"], pages())


def test_a_table_says_that_there_are_more_rows(capsys):
    taken = []

    def pages():
        for number in range(5 * TABLE_ROWS):
            taken.append(number)
            yield [(number,)]

    TableRows().pages(["a"], ["INTEGER"], pages())
    shown = capsys.readouterr()
    assert (len(shown.out.splitlines()), len(taken)) == (TABLE_ROWS + 1, TABLE_ROWS + 1)
    assert shown.err == "only the first 1,000 rows are shown: -o csv and -o json print all\n"


def test_a_name_that_drives_the_terminal_is_escaped(capsys):
    TableRows().pages(["a"], ["VARCHAR"], [[("\x1b[2J",)]])
    JsonRows().pages(["a"], ["VARCHAR"], [[("\x1b[2J",)]])
    assert "\x1b" not in capsys.readouterr().out
