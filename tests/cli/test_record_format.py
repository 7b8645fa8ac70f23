import json

import pytest

from barnabas.cli.record_format import Shown, printer, to_json, unescape

RECORD = Shown("t", 3, 47, 1_733_000_000_123, b"k\xff", b"value", [("a", b"1"), ("b", None)], 5)


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


def test_escapes() -> None:
    assert unescape("\\t%\\x00") == b"\t%\0"
