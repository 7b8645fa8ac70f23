import json

from barnabas.cli.record_format import Shown, to_json, unescape

RECORD = Shown("t", 3, 47, 1_733_000_000_123, b"k\xff", b"value", [("a", b"1"), ("b", None)], 5)


def test_json_does_not_drive_the_terminal() -> None:
    printed = to_json(RECORD._replace(key=None, value="\x1b[2J\x9b1mö".encode(), headers=[]))
    assert b'"value": "\\u001b[2J\\u009b1m\xc3\xb6"' in printed


def test_json_marks_what_is_not_utf8() -> None:
    line = to_json(RECORD)
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
