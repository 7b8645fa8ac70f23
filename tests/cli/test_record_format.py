import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.cli.record_format import Given, Shown, line_reader, parse_header, printer, reader, to_json, unescape

RECORD = Shown("t", 3, 47, 1_733_000_000_123, b"k\xff", b"value", [("a", b"1"), ("b", None)], 5)


class Trickle(io.BytesIO):
    """A stream that gives a byte at a time, as a slow pipe would."""

    def read1(self, size: int | None = -1) -> bytes:
        return self.read(1)


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        ("%t %p %o\\n", b"t 3 47\n"),
        ("%k=%s", b"k\xff=value"),
        ("%v|%V|%S|%K", b"value|5|5|2"),
        ("%h %H", b"a=1,b=NULL 2"),
        ("%T %d %e", b"1733000000123 1733000000123 5"),
        ("%T{iso}", b"2024-11-30T20:53:20.123Z"),
        ("%k{hex} %v{base64}", b"6bff dmFsdWU="),
        ("%R%v", b"\0\0\0\5value"),
        ("100%% \\x41\\t\\\\{}", b"100% A\t\\{}"),
        ("", b""),
    ],
)
def test_prints(template: str, printed: bytes) -> None:
    assert printer(template)(RECORD) == printed


def test_null_prints_nothing_and_has_length_minus_one() -> None:
    empty = RECORD._replace(key=None, value=None, headers=[])
    assert printer("[%k|%s|%K|%S|%h|%k{hex}]")(empty) == b"[||-1|-1||]"
    assert printer("%R")(empty) == b"\xff\xff\xff\xff"


@pytest.mark.parametrize("template", ["%q", "%", "a\\", "\\q", "%k{iso}", "%t{hex}", "\\x4"])
def test_formats_that_are_none(template: str) -> None:
    with pytest.raises(ValueError):
        printer(template)


def test_json_does_not_drive_the_terminal() -> None:
    printed = to_json(RECORD._replace(key=None, value="\x1b[2J\x9b1mö".encode(), headers=[]))
    assert b'"value": "\\u001b[2J\\u009b1m\xc3\xb6"' in printed


def test_json_marks_what_is_not_utf8() -> None:
    line = printer("json")(RECORD)
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "topic": "t",
        "partition": 3,
        "offset": 47,
        "timestamp": 1_733_000_000_123,
        "key_base64": "a/8=",
        "value": "value",
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "value": None}],
    }


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
        ("%k %v\\n", b"nokey\n", "record 1 ends before b' '"),
        ("<%v>", b"<a>b", "record 2 does not begin with b'<'"),
        ("%p %v\\n", b"x v\n", "record 1: %p cannot be 'x'"),
        ("%v{base64}\\n", b"!\n", "record 1: %v cannot be '!'"),
        ("%h\\n", b"=1\n", "has no name"),
        ("json", b"{}\n[]\n", "line 2 is not a record in JSON"),
        ("json", b'{"headers": [1]}', "line 1 is not a record in JSON: header 1 is not"),
        ("json", b'{"headers": [{"key": 3}]}', "key cannot be 3"),
        ("json", b'{"headers": {"a": "b"}}', "headers cannot be"),
        ("json", b'{"partition": "1"}', 'partition cannot be "1"'),
        ("json", b'{"timestamp": true}', "timestamp cannot be true"),
        ("json", b'{"topic": 7}', "topic cannot be 7"),
        ("json", b'{"value_base64": "!!!"}', "line 1 is not a record in JSON"),
        ("json", b'{"value_base64": 3}', "line 1 is not a record in JSON"),
    ],
)
def test_input_that_does_not_fit(template: str, data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(reader(template)(io.BytesIO(data)))


@pytest.mark.parametrize("template", ["%k%v", "%o %v", "text", "%v{gzip}", "%p{hex} "])
def test_formats_that_cannot_be_read(template: str) -> None:
    with pytest.raises(ValueError):
        reader(template)


def test_lines_with_and_without_keys() -> None:
    read = line_reader(b"\n", b":")
    assert list(read(io.BytesIO(b"k:v:w\nnone\n:empty\n"))) == [
        Given(b"v:w", b"k"),
        Given(b"none"),
        Given(b"empty", b""),
    ]
    assert list(line_reader(b"\r\n", None)(Trickle(b"a\nb\r\nc"))) == [Given(b"a\nb"), Given(b"c")]
    with pytest.raises(ValueError, match="at least one character"):
        line_reader(b"", None)


def test_headers_and_escapes() -> None:
    assert parse_header("a=b=c") == ("a", b"b=c")
    assert parse_header("a") == ("a", None)
    with pytest.raises(ValueError, match="has no name"):
        parse_header("=x")
    assert unescape("\\t%\\x00") == b"\t%\0"


optional = st.one_of(st.none(), st.binary(max_size=30))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(optional, optional, st.lists(st.tuples(st.text(min_size=1, max_size=5), optional), max_size=3))
def test_json_round_trip(key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]) -> None:
    record = RECORD._replace(key=key, value=value, headers=headers)
    (read,) = reader("json")(io.BytesIO(to_json(record)))
    assert read == Given(value, key, headers, "t", 3, RECORD.timestamp)
