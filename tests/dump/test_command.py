"""`log dump` of files that a log has written, and of damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.main import command_group
from barnabas.metadata.record_codec import encode_record
from barnabas.protocol.messages import TopicRecord
from barnabas.protocol.primitives import Uuid
from barnabas.records.builder import build_batch
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.record_batch import patch

NEWEST = 30


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command_group(), ["log", "dump", *map(str, arguments)], prog_name="barnabas")


def segment(folder: Path, *batches: bytes | bytearray, directory: str = "orders-3", base: int = 0) -> Path:
    """Write a segment whose batches follow each other."""
    (folder / directory).mkdir()
    path = folder / directory / f"{base:020}.log"
    whole = b""
    for batch in batches:
        changed = bytearray(batch)
        patch(changed, 0, base, 7)
        whole += changed
        base += 1 + int.from_bytes(changed[23:27], "big")
    path.write_bytes(whole)
    return path


def values(*values: bytes) -> bytes | bytearray:
    return build_batch([(1000 + number, b"k", value, []) for number, value in enumerate(values)])


def test_the_batches_of_a_segment(tmp_path: Path) -> None:
    result = run(segment(tmp_path, values(b"a", b"b"), values(b"c"), base=40), "-o", "json")
    assert (result.exit_code, result.stderr.startswith("2 batches, 3 records, ")) == (0, True)
    first, second = json.loads(result.stdout)
    assert (first["position"], first["base_offset"], first["last_offset"], first["records"]) == (0, 40, 41, 2)
    assert (second["position"], second["base_offset"], second["leader_epoch"]) == (first["size"], 42, 7)
    assert (first["codec"], first["kind"], first["status"], first["producer"]) == ("none", "data", "whole", None)


def test_the_records_of_a_segment(tmp_path: Path) -> None:
    marker = build_end_transaction_marker(
        commit=True, coordinator_epoch=5, producer_id=9, producer_epoch=0, timestamp=2000
    )
    result = run(segment(tmp_path, values(b"a", b"b"), marker), "--records")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["offset"] for line in lines] == [0, 1, 2]
    assert (lines[1]["topic"], lines[1]["partition"], lines[1]["value"]) == ("orders", 3, "b")
    assert (lines[2]["control"], lines[2]["fields"]) == ("COMMIT", {"coordinator_epoch": 5})


def test_the_records_of_the_metadata_log_have_fields(tmp_path: Path) -> None:
    record = encode_record(TopicRecord(name="orders", topic_id=Uuid(bytes(range(16)))), NEWEST)
    batch = build_batch([(0, None, record, []), (0, None, b"\x01\xff\x7f\x00", [])])
    result = run(segment(tmp_path, batch, directory="__cluster_metadata-0"), "--records")
    topic, unknown = (json.loads(line) for line in result.stdout.splitlines())
    assert (topic["type"], topic["fields"]["name"]) == ("TopicRecord", "orders")
    assert unknown["problem"]


@pytest.mark.parametrize(
    ("cut", "error"),
    [
        (lambda data: data[:-1], "bytes from position"),
        (lambda data: data + bytes(100), "they are zeros"),
        (lambda data: data + b"\7" * 100, "are no batch: magic 7"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "is damaged: "),
    ],
)
def test_damage_is_an_error(tmp_path: Path, cut: object, error: str) -> None:
    path = segment(tmp_path, values(b"a"), values(b"b"))
    assert callable(cut)
    path.write_bytes(cut(path.read_bytes()))
    for options in ((), ("--records",)):
        result = run(path, *options)
        assert (result.exit_code, error in result.stderr) == (1, True), result.output


def test_a_batch_whose_checksum_does_not_fit_is_named(tmp_path: Path) -> None:
    path = segment(tmp_path, values(b"aaa"), values(b"b"))
    path.write_bytes(path.read_bytes().replace(b"aaa", b"aba"))
    result = run(path, "-o", "json")
    assert "the batch at position 0 is damaged" in result.stderr
    first, second = json.loads(result.stdout)
    assert (second["status"], first["status"] != "whole") == ("whole", True)


def test_an_empty_segment_says_so(tmp_path: Path) -> None:
    result = run(segment(tmp_path))
    assert (result.exit_code, result.stderr) == (0, "0 batches, 0 records, 0 bytes\n")


@pytest.mark.parametrize(
    ("name", "options", "code", "error"),
    [
        ("notes.txt", (), 1, "no file of a log"),
        ("notes.index", (), 1, "its name is not the base offset of a segment"),
        ("notes.txt", ("--records",), 2, "has no records"),
    ],
)
def test_other_files(tmp_path: Path, name: str, options: tuple[str, ...], code: int, error: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    result = run(path, *options)
    assert (result.exit_code, error in result.stderr) == (code, True)


def test_several_files_have_their_names(tmp_path: Path) -> None:
    path = segment(tmp_path, values(b"a"))
    result = run(path, path)
    assert result.stdout.count(str(path)) == 2
