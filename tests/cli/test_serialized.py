"""`produce -s` and `consume -s`, the one reads what the other writes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.failure import Failure
from barnabas.cli.record_printer import printer
from barnabas.cli.record_reader import Given
from barnabas.cli.serdes import Serdes
from barnabas.cli.serialized import Decoding, Encoding, opened_source
from barnabas.main import command_group
from barnabas.schemas.known_schemas import KnownSchemas, write_folder
from barnabas.schemas.schema import Schema
from tests.cli.test_record_format import RECORD
from tests.cli.test_record_printer import message
from tests.registry.asking import record

KNOWN = KnownSchemas(
    "schemas",
    {1: Schema(json.dumps(record("a"))), 2: Schema('{"type": "string"}', "JSON")},
    {"orders-value": {1: 1}, "orders-key": {1: 2}, "t-value": {1: 1}},
)
AVRO = b"\0\0\0\0\x01\x02x"


def test_batches_of_pairs_and_records() -> None:
    encoding = Encoding(Serdes("json", "avro", "r"), KNOWN, "orders")
    pairs = [(b'{"a": "x"}', b'"k"'), (None, None)]
    key = struct.pack(">bi", 0, 2) + b'"k"'
    assert list(encoding.pairs(iter(pairs))) == [(AVRO, key), (None, None)]
    with pytest.raises(ValueError, match="record 3: its value cannot be encoded: a: 1 is not a value of string"):
        list(encoding.pairs(iter([(b'{"a": 1}', None)])))
    by_topic = Encoding(Serdes(None, "avro", "r"), KNOWN, None)
    found = list(by_topic.records(iter([Given(b'{"a": "x"}', b"k", None, "t", None, None)])))
    assert [(each.value, each.key) for each in found] == [(AVRO, b"k")]
    with pytest.raises(ValueError, match="names no topic"):
        list(by_topic.records(iter([Given(b"", None, None, None, None, None)])))
    with pytest.raises(Failure, match="no subject absent-value"):
        Encoding(Serdes(None, "avro", "r"), KNOWN, "absent")
    assert repr(by_topic) == "<Encoding topic=None read=2>"


def test_decoded_messages(capsys: pytest.CaptureFixture[str]) -> None:
    def messages() -> list[object]:
        return [message(RECORD._replace(key=b"k", value=each)) for each in (AVRO, b"text", None)]

    decoding = Decoding(Serdes(None, "avro", "r"), KNOWN)
    assert decoding.before(printer("%k %v\\n"))(messages()) == b'k {"a": "x"}\nk text\nk \n'  # type: ignore[arg-type]
    lines = [json.loads(each) for each in decoding.json_lines(messages()).splitlines()]  # type: ignore[arg-type]
    assert [(each["key"], each["value"]) for each in lines] == [("k", {"a": "x"}), ("k", "text"), ("k", None)]
    decoding.report()
    said = capsys.readouterr().err
    assert said.startswith("2 values could not be decoded: t-3 offset 47: the value has no schema id in front")
    packed = Decoding(Serdes("msgpack", None), None)
    assert packed.before(printer("%k\\n"))([message(RECORD._replace(key=b"\x92\x01\x02"))]) == b"[1, 2]\n"
    packed.report()
    assert capsys.readouterr().err == ""


def test_a_registry_that_is_not_there() -> None:
    assert opened_source(Serdes(None, "msgpack")) is None
    with pytest.raises(Failure, match="absent"):
        opened_source(Serdes(None, "avro", "absent"))


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        yield running


def test_the_commands(broker: barnabas.Broker, tmp_path: Path) -> None:
    write_folder(tmp_path / "schemas", KNOWN)
    words = ("-s", "avro", "-r", str(tmp_path / "schemas"), "-b", broker.bootstrap_servers)

    def run(*command: str, given: str = "") -> Result:
        return CliRunner().invoke(command_group(), [*command, *words], input=given)

    broker.create_topic("orders")
    broker.create_topic("users")
    done = run("produce", "orders", "-K:", given='k:{"a": "x"}\nk:{"a": "y"}\n')
    assert (done.exit_code, done.stdout) == (0, "produced 2 records (orders-0: 2)\n")
    assert run("consume", "orders", "-e").stdout == '{"a": "x"}\n{"a": "y"}\n'
    lines = run("consume", "orders", "-e", "-f", "json", "--filter", 'value.a == "y"').stdout
    assert json.loads(lines)["value"] == {"a": "y"}
    assert run("produce", "orders", "-f", "json", given=lines).stdout == "produced 1 record (orders-0: 1)\n"
    assert run("consume", "orders", "-o", "2", "-e").stdout == '{"a": "y"}\n'
    done = run("produce", "orders", given='{"a": "z"}\n{"b": 1}\n')
    assert done.exit_code == 1
    assert done.stderr == (
        "error: record 2: its value cannot be encoded: Order has no field 'b' (1 record was produced before)\n"
    )
    done = run("produce", "users", given="{}\n")
    assert (done.exit_code, "has no subject users-value" in done.stderr) == (1, True)
    done = CliRunner().invoke(command_group(), ["consume", "orders", "-s", "avro"])
    assert (done.exit_code, "-s avro needs the schemas of a registry" in done.stderr) == (2, True)
