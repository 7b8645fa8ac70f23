from __future__ import annotations

import json

import pytest

from barnabas.cli.export_manifest import DataFile, Manifest, NotAManifest, data_file_name, is_data_file
from tests.cli.exports import manifest

FILE = DataFile(data_file_name(0, 3, "jsonl"), 0, 3, 7, 4, 120, "ab" * 32)


def test_it_reads_what_it_writes() -> None:
    written = manifest("jsonl", FILE)
    found = Manifest.from_json(written.to_json())
    assert found == written
    assert (found.records, found.size_bytes, found.digest()) == (4, 120, written.digest())
    assert json.loads(written.to_json())["records"] == 4


def test_a_run_goes_on_behind_the_last_file_or_behind_what_was_deleted() -> None:
    found = manifest("jsonl", FILE)
    assert [found.position(each) for each in found.places] == [8, 0]
    found.places[1].log_start = 2
    assert [found.position(each) for each in found.places] == [8, 2]


def test_the_names_of_data_files() -> None:
    assert FILE.name == "00000-00000000000000000003.jsonl"
    assert is_data_file(FILE.name)
    assert is_data_file(f"{FILE.name}.tmp")
    assert not is_data_file("notes.jsonl")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "has version 2, and this release reads version 1: use a newer release"),
        ({"kind": "other"}, "is not that of an export"),
        ({"records": 5}, "is damaged"),
        ({"files": [{"name": 1}]}, "is damaged"),
        ({"places": 1}, "is damaged"),
        ({"more": 1}, "is damaged"),
    ],
    ids=str,
)
def test_what_is_no_manifest(change: dict[str, object], words: str) -> None:
    fields = json.loads(manifest("jsonl", FILE).to_json()) | change
    with pytest.raises(NotAManifest, match=words):
        Manifest.from_json(json.dumps(fields).encode())


def test_a_file_is_never_looked_for_outside_of_the_folder() -> None:
    text = manifest("jsonl", FILE).to_json().replace(FILE.name.encode(), b"../../00000-00000000000000000003.jsonl")
    with pytest.raises(NotAManifest, match="is damaged"):
        Manifest.from_json(text)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"1"])
def test_other_bytes_are_no_manifest(data: bytes) -> None:
    with pytest.raises(NotAManifest):
        Manifest.from_json(data)
