import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.cli.record_format import to_json
from barnabas.cli.record_reader import Common, Given, parse_header, reader
from tests.cli.test_record_format import RECORD


class Trickle(io.BytesIO):
    """A stream that gives a byte at a time, as a slow pipe would."""

    def read1(self, size: int | None = -1) -> bytes:
        return self.read(1)


def given_records(template: str, data: bytes) -> list[Given]:
    whole = list(reader(template)(io.BytesIO(data)))
    assert list(reader(template)(Trickle(data))) == whole
    return whole


def test_reads_fields_up_to_the_text_behind_them() -> None:
    assert given_records("%k %v\\n", b"k1 v 1\nk2 v2") == [Given(b"v 1", b"k1"), Given(b"v2", b"k2")]
    assert given_records("%t/%p:%T %h|%k{hex}=%v{base64};", b"t/3:1000 a=1,b|6bff=dg==;") == [
        Given(b"v", b"k\xff", [("a", b"1"), ("b", None)], "t", 3, 1000)
    ]
    assert given_records("<%v>", b"<a><b>") == [Given(b"a"), Given(b"b")]
    assert given_records("%v", b"all\nof it") == [Given(b"all\nof it")]
    assert given_records("%v--\\n", b"a-\n-b--\nc--\n") == [Given(b"a-\n-b"), Given(b"c")]
    assert given_records("%v\\n", b"") == []
    assert given_records("%v\\n", b"\n\n") == [Given(b""), Given(b"")]


@pytest.mark.parametrize(
    ("template", "data", "message"),
    [
        ("%k %v\\n", b"nokey\n", "record 1 has no ' ', which the format asks for"),
        ("<%v>", b"<a>b", "record 2 does not begin with '<', which"),
        ("%p %v\\n", b"x v\n", "record 1: %p: 'x' is not a valid partition"),
        ("%v{base64}\\n", b"!\n", "record 1: %v: '!' is not valid base64"),
        ("%v{hex}\\n", b"a\nzz\n", "record 1: %v: 'a' is not valid hexadecimal"),
        ("%k\\t%v\\n", b"a b\n", r"record 1 has no '\\t', which"),
        ("%t\\n", b"\xff\n", r"record 1: %t: '\xff' is not valid UTF-8"),
        ("%T\\n", b"soon\n", "record 1: %T: 'soon' is not a valid time"),
        ("json", b"{'key': 'a'}\n", "line 1 is not valid JSON from column 2 on"),
        ("json", b'{"key": "a"} x\n', "line 1 is not valid JSON from column 14 on"),
        ("json", b'{"key": "a"}\n{"key"}\n', "line 2 is not valid JSON from column 7 on"),
        ("json", b"\xff\n", "line 1 is not valid UTF-8"),
        ("%h\\n", b"=1\n", "has no name"),
        ("json", b"{}\n[]\n", "line 2 is not a record in JSON"),
        ("json", b'{"headers": [1]}', "line 1 is not a record in JSON: header 1 is not"),
        ("json", b'{"headers": [{"key": 3}]}', "key cannot be 3"),
        ("json", b'{"headers": {"a": "b"}}', "headers cannot be"),
        ("json", b'{"partition": "1"}', 'partition cannot be "1"'),
        ("json", b'{"timestamp": true}', "timestamp cannot be true"),
        ("json", b'{"topic": 7}', "topic cannot be 7"),
        ("json", b'{"value_base64": "!!!"}', "line 1 is not a record in JSON"),
        ("json", b'{"value_base64": 3}', "line 1 is not a record in JSON: value_base64 cannot be 3"),
    ],
)
def test_input_that_does_not_fit(template: str, data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        list(reader(template)(io.BytesIO(data)))
    assert not re.search(r"b'|codec|object |int\b", str(error.value)), "Python does not show"


@pytest.mark.parametrize("template", ["%k%v", "%o %v", "text", "%v{gzip}", "%p{hex} "])
def test_formats_that_cannot_be_read(template: str) -> None:
    with pytest.raises(ValueError):
        reader(template)


def test_headers() -> None:
    assert parse_header("a=b=c") == ("a", b"b=c")
    assert parse_header("a") == ("a", None)
    with pytest.raises(ValueError, match="has no name"):
        parse_header("=x")


optional = st.one_of(st.none(), st.binary(max_size=30))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(optional, optional, st.lists(st.tuples(st.text(max_size=5), optional), max_size=3))
def test_json_round_trip(key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]) -> None:
    record = RECORD._replace(key=key, value=value, headers=headers)
    (read,) = reader("json")(io.BytesIO(to_json(record)))
    assert read == Given(value, key, headers, "t", 3, RECORD.timestamp)


def test_json_without_a_value_is_a_tombstone_and_is_noted_once() -> None:
    """Such a line may be meant as a value: a document that is no record in JSON."""
    notes: list[str] = []
    lines = b'{"key": "a", "value": null}\n{"key": "b", "value_base64": "eA=="}\n{"key": 1}\n{"key": 2}\n'
    found = list(reader("json", notes.append)(io.BytesIO(lines)))
    assert [(each.key, each.value) for each in found] == [(b"a", None), (b"b", b"x"), (b"1", None), (b"2", None)]
    assert notes == ['line 3 has no "value": it and all such lines are tombstones; "value": null says so']


def test_what_is_said_of_every_record_completes_it() -> None:
    records = [Given(b"", b"k", [("own", b"1")], "t", 3, 7), Given(b"v")]
    assert list(Common().complete(iter(records))) == records
    common = Common(b"all", 2, [("common", None)], tombstone=True)
    assert list(common.complete(iter(records))) == [
        Given(None, b"all", [("common", None), ("own", b"1")], "t", 2, 7),
        Given(b"v", b"all", [("common", None)], None, 2),
    ]
    assert list(common.pairs(iter([(b"", b"k"), (b"v", None)]))) == [(None, b"all"), (b"v", b"all")]
    assert list(Common(tombstone=True).pairs(iter([(b"", b"k"), (b"v", None)]))) == [(None, b"k"), (b"v", None)]
