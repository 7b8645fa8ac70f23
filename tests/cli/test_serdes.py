"""`-s` and `-r`."""

from __future__ import annotations

import pytest

from barnabas.cli.serdes import Serdes, serdes_of


def test_what_they_say() -> None:
    assert not serdes_of((), None)
    assert serdes_of(("avro",), "http://h:1") == Serdes(None, "avro", "http://h:1")
    assert serdes_of(("key=json", "value=protobuf"), "folder") == Serdes("json", "protobuf", "folder")
    assert serdes_of(("key=msgpack",), None) == Serdes("msgpack", None, None)


@pytest.mark.parametrize(
    ("formats", "registry", "why"),
    [
        (("avro",), None, "-s avro needs the schemas of a registry: -r http://HOST:8081"),
        (("avrro",), "r", "'avrro' is not one of avro, protobuf, json, msgpack; did you mean avro"),
        (("valeu=avro",), "r", "'valeu' is not key or value; did you mean value"),
        (("avro", "value=json"), "r", "the format of the value is given twice"),
        (("msgpack",), "r", "-r is for -s avro"),
        ((), "r", "-r is for -s avro"),
    ],
)
def test_a_wrong_command_line(formats: tuple[str, ...], registry: str | None, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        serdes_of(formats, registry)
