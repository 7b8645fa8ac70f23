"""Several records from lines of JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import barnabas
from barnabas.console.changes import several_records
from barnabas.console.changes.given import BadForm
from barnabas.console.changes.several_records import read_records
from tests.console.forms import carry_out, change, lines, preview
from tests.console.reading import html, twin

CHANGE = "records-produce"
LINES = [
    {"key": "a", "value": "1", "headers": [{"key": "source", "value": "shop"}]},
    {"key": "b", "value": None, "partition": 1},
    {"value": "3", "timestamp": 1_700_000_000_000},
    {"value": "classified"},
]
TEXT = "\n".join(json.dumps(each) for each in LINES)


def test_all_of_them(changed: barnabas.Broker, writer: TestClient, audit: Path) -> None:
    change(writer, "topic-create", name="several", partitions="2")
    assert f"change/{CHANGE}?topic=several" in html(writer, "topic", name="several")
    shown = preview(writer, CHANGE, topic="several", lines=TEXT)
    (row,) = shown.rows
    assert (row["topic"], row["records"], row["status"]) == ("several", 4, "would be produced")
    assert [each["value"] for each in row["first"]] == ["1", None, "3"]
    assert carry_out(writer, shown).rows == [{"topic": "several", "records": 4, "status": "produced"}]
    assert carry_out(writer, shown).status == 409
    found = twin(writer, "messages", topic="several", order="oldest")["messages"]
    assert sorted(str(each["value"]) for each in found) == ["1", "3", "None", "classified"]
    assert {each["partition"] for each in found if each["key"] == "b"} == {1}
    assert all(each["transactional"] for each in found)
    assert "classified" not in audit.read_text()
    assert lines(audit)[-1]["rows"] == [{"topic": "several", "records": 4, "status": "produced"}]


def test_none_of_them(writer: TestClient) -> None:
    change(writer, "topic-create", name="several-refused", configs="cleanup.policy=compact")
    for fields, sentence in (
        ({"lines": '{"key": "k", "partition": 3}'}, "Record 1 is for partition 3"),
        ({"lines": "x"}, "Line 1 is not valid JSON from column 1 on."),
        ({"lines": '{"timestamp": -2}'}, "Record 1 has no possible timestamp"),
        ({"lines": '{"timestamp": 9223372036854775808}'}, "Record 1 has no possible timestamp"),
        ({"lines": " "}, "There is no record in the text."),
        ({"topic": "several-absent", "lines": "{}"}, "does not exist"),
    ):
        assert sentence in preview(writer, CHANGE, **{"topic": "several-refused", **fields}).error


def test_every_line_that_is_wrong_is_named() -> None:
    with pytest.raises(BadForm) as refused:
        read_records(b'\n{"value": "1"}\nx\n{"value": "2"}\n[]\n{"partition": "z"}', "it")
    assert [each.split(" is ")[0] for each in str(refused.value).split("; ")] == ["line 3", "line 5", "line 6"]
    with pytest.raises(BadForm) as refused:
        read_records(b"\n".join([b"x"] * 20), "it")
    assert [each.split(" is ")[0] for each in str(refused.value).split("; ")][-2:] == [
        "line 5",
        "15 more lines are wrong",
    ]


def test_a_line_without_a_value_is_said() -> None:
    records, notes = read_records(b'{"key": "k"}\n{"key": "k"}\n', "it")
    assert ([each.value for each in records], len(notes)) == ([None, None], 1)


HOSTILE_LINES = (
    (b"[" * 100_000, "line 1 is nested too deeply"),
    (b'{"value": %s}' % (b"9" * 5000), "line 1 has a number with too many digits"),
    (b'{"value": "\\ud800"}', "line 1 has half of a pair of surrogates, which is not a character"),
    (b'{"headers": [{"key": "\\udfff"}]}', "line 1 has half of a pair of surrogates, which is not a character"),
    (b'{"value": "\xff"}', "line 1 is not valid UTF-8"),
    (b'{"value_base64": "?"}', "line 1 is not a record in JSON: '?' is not valid base64"),
    (b'{"not_read": ["x"]}', "line 1 is not a record in JSON: an export ends so that could not read all records"),
    (b"\x00", "line 1 is not valid JSON from column 1 on"),
)


@pytest.mark.parametrize(("line", "sentence"), HOSTILE_LINES, ids=[sentence[7:30] for _, sentence in HOSTILE_LINES])
def test_a_hostile_line_is_a_sentence(line: bytes, sentence: str) -> None:
    with pytest.raises(BadForm) as refused:
        read_records(line, "it")
    assert str(refused.value) == sentence


def test_too_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several_records, "RECORDS_MAX", 2)
    with pytest.raises(BadForm, match="it has more than 2 records"):
        read_records(b"{}\n{}\n{}", "it")
