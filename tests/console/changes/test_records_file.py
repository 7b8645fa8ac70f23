"""Records from a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import barnabas
from barnabas.console.changes import records_file
from barnabas.main import command_group
from tests.console.forms import JSON, address, carry_out, change, lines, upload
from tests.console.multipart import HOSTILE
from tests.console.reading import html, tags
from tests.console.writing import Given, create, write
from tests.retries.records import committed

CHANGE = "records-file"
RECORDS = [
    Given(b'{"n": 1}', b"k", 0, 1_700_000_000_000, [("h", b"1"), ("h", None), ("b", b"\xff\x00")]),
    Given(None, b"\xfe\x00", 1, 1_700_000_000_001),
    Given(b"\x00\x80", None, 0, 1_700_000_000_002),
    Given(b"", b"", 1, 1_700_000_000_003, [("größe", "\u202e".encode()), ("", b"")]),
    Given("a\r\nb\u2028c \\".encode(), b'"', 0, 1_700_000_000_004),
]


def consumed(bootstrap: str, topic: str) -> bytes:
    words = ["consume", topic, "-e", "-f", "json", "-b", bootstrap]
    return CliRunner().invoke(command_group(), words, prog_name="barnabas").stdout_bytes


@pytest.mark.slow
@pytest.mark.parametrize("source", ["command", "export"])
def test_what_comes_out_goes_in_again(changed: barnabas.Broker, writer: TestClient, audit: Path, source: str) -> None:
    bootstrap = changed.bootstrap_servers
    create(bootstrap, f"out-{source}", 2)
    create(bootstrap, f"in-{source}", 2)
    write(bootstrap, f"out-{source}", RECORDS)
    export = "/clusters/local/messages/export.jsonl"
    data = (
        consumed(bootstrap, f"out-{source}")
        if source == "command"
        else writer.get(export, params={"topic": f"out-{source}", "order": "oldest"}).content
    )
    assert f"change/{CHANGE}?topic=in-{source}" in html(writer, "topic", name=f"in-{source}")
    shown = upload(writer, CHANGE, data, topic=f"in-{source}")
    assert (shown.rows[0]["records"], shown.rows[0]["status"]) == (5, "would be produced")
    assert any("some lines name another topic" in each for each in shown.data["notes"])
    assert carry_out(writer, shown).rows == [{"topic": f"in-{source}", "records": 5, "status": "produced"}]
    before, after = (committed(bootstrap, f"{way}-{source}", 2) for way in ("out", "in"))
    assert [(each.partition, each.timestamp_ms, each.key, each.value, each.headers) for each in after] == [
        (each.partition, each.timestamp_ms, each.key, each.value, each.headers) for each in before
    ]
    again = carry_out(writer, shown)
    assert (again.status, "file of this preview is not kept" in again.error) == (409, True)
    assert lines(audit)[-2]["what"]["file"] == f"records.jsonl ({len(data)} bytes)"
    assert "u202e" not in audit.read_text()


def test_a_browser_without_javascript(changed: barnabas.Broker, writer: TestClient) -> None:
    change(writer, "topic-create", name="by-browser")
    page = writer.get(address(CHANGE), params={"topic": "by-browser"}).text
    (sent,) = [each for tag, each in tags(page) if tag == "form"]
    assert sent["enctype"] == "multipart/form-data"
    token = next(str(each["value"]) for tag, each in tags(page) if tag == "input" and each["name"] == "token")
    fields = {"token": token, "topic": "by-browser", "partitions": "key"}
    empty = writer.post(address(CHANGE), data=fields, files={"file": ("", b"")})
    assert (empty.status_code, "The file is missing." in empty.text) == (400, True)
    lines = b'{"value": "1", "partition": 7}\r\n{"value": "<script>"}\r\n'
    page = writer.post(address(CHANGE), data=fields, files={"file": ("<script>", lines)}).text
    assert "<h1>Produce 2 records to topic by-browser?</h1>" in page
    assert "<script>" not in page
    hidden = {
        str(each["name"]): str(each["value"]) for tag, each in tags(page) if tag == "input" and each["type"] == "hidden"
    }
    assert "<h1>Done: Produce 2 records" in writer.post(address(CHANGE), data=hidden).text
    assert len(committed(changed.bootstrap_servers, "by-browser")) == 2


def test_a_file_is_written_whole_or_not(writer: TestClient) -> None:
    change(writer, "topic-create", name="whole")
    for data, sentence in (
        (b'{"value": "1"}\nx\n{"value": 2}\n[]\n', "Line 2 is not valid JSON from column 1 on; line 4 is not a record"),
        (b"", "The file is empty."),
        (b"\n \n", "There is no record in the file."),
        (b'{"partition": 1}', "Record 1 is for partition 1, and topic whole has 1 partition"),
        (b"x" * (records_file.FILE_BYTES_MAX + 1), "The file is larger than 8 MB, the most that this form takes."),
    ):
        refused = upload(writer, CHANGE, data, topic="whole")
        assert (refused.status, sentence in refused.error) == (400, True), refused.error
    shown = upload(writer, CHANGE, b"{}", topic="whole")
    invented = {**shown.data["send"], "file": "invented"}
    answer = writer.post(address(CHANGE), data=invented, headers=JSON)
    assert (answer.status_code, "Choose the file again" in answer.json()["error"]) == (409, True)
    # A preview whose file is another one is another one.
    other = upload(writer, CHANGE, b'{"value": "x"}', topic="whole")
    mixed = {**shown.data["send"], "file": other.data["send"]["file"]}
    assert writer.post(address(CHANGE), data=mixed, headers=JSON).status_code == 409


def test_a_file_that_is_too_large_is_not_read(writer: TestClient) -> None:
    length = str(records_file.FILE_BYTES_MAX + (64 << 10) + 1)
    for number in (length.encode(), b"1" * 30, b"\xb2", b"-1", b""):
        answer = writer.post(address(CHANGE), content=b"", headers={"content-length": number})
        assert (answer.status_code, "a file may have 8 MB" in answer.text) == (413, True)
    small = writer.post(address("topic-create"), content=b"", headers={"content-length": "70000"})
    assert (small.status_code, "a file" in small.text) == (413, False)


@pytest.mark.parametrize(
    ("content_type", "body", "sentence"), [each[1:] for each in HOSTILE], ids=[each[0] for each in HOSTILE]
)
def test_a_hostile_body_is_a_sentence(writer: TestClient, content_type: str, body: bytes, sentence: str) -> None:
    answer = writer.post(address(CHANGE), content=body, headers={"content-type": content_type, **JSON})
    assert (answer.status_code, sentence in answer.json()["error"]) == (400, True), answer.text
    assert answer.json()["error"].endswith(" Nothing was changed.")


def test_other_forms_take_no_file(writer: TestClient) -> None:
    token = writer.get(address("topic-create"), headers=JSON).json()["token"]
    answer = writer.post(address("topic-create"), data={"token": token}, files={"name": ("n", b"x")}, headers=JSON)
    assert (answer.status_code, answer.json()["error"]) == (400, "This form takes no file. Nothing was changed.")


def test_a_forged_form_leaves_nothing(writer: TestClient) -> None:
    answer = writer.post(address(CHANGE), data={"token": "x"}, files={"file": ("n", b"{}")}, headers=JSON)
    assert answer.status_code == 403
