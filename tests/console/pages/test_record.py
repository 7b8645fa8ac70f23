"""The page of one record."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

import barnabas
from tests.console.reading import html, twin
from tests.console.writing import Given, create, write

LARGE = b'{"text": "' + b"x" * 200_000 + b'"}'


@pytest.fixture(scope="module")
def kept(records_broker: barnabas.Broker) -> barnabas.Broker:
    create(records_broker.bootstrap_servers, "kept")
    records = [
        Given(LARGE, b"k", headers=[("h", b"<b>"), ("raw", b"\xff"), ("none", None)]), Given(None, b"\x00\x01"), Given(b"\xff\x00"),
        Given(b"line\nline <i>\x1b[31m"),
    ]  # fmt: skip
    write(records_broker.bootstrap_servers, "kept", records, compression_type="lz4")
    return records_broker


def asked(offset: int, **more: str) -> dict[str, str]:
    return {"topic": "kept", "partition": "0", "offset": str(offset), **more}


def test_facts_headers_and_a_value_that_is_cut(kept: barnabas.Broker, records_browser: TestClient) -> None:
    found = twin(records_browser, "record", **asked(0))
    assert (found["record"]["codec"], found["record"]["batch_records"], found["value"]["bytes"]) == (
        "lz4",
        4,
        len(LARGE),
    )
    assert found["headers"] == [
        {"name": "h", "value": "<b>", "format": "text"},
        {"name": "raw", "value": "ff", "format": "hex"},
        {"name": "none", "value": None, "format": "text"},
    ]
    page = html(records_browser, "record", **asked(0))
    assert "<b>" not in page
    assert "of which these are the first" in page
    assert "Load all" in page
    assert page.count("x") < 70_000
    whole = html(records_browser, "record", **asked(0, all="1"))
    assert whole.count("x") > 200_000
    assert "Load all" not in whole


def test_the_bytes_as_a_file(kept: barnabas.Broker, records_browser: TestClient) -> None:
    answer = records_browser.get("/clusters/local/record/raw", params=asked(0, part="value"))
    assert answer.content == LARGE
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == 'attachment; filename="kept-0-0.value"'
    assert records_browser.get("/clusters/local/record/raw", params=asked(1, part="key")).content == b"\x00\x01"
    assert records_browser.get("/clusters/local/record/raw", params=asked(1, part="value")).status_code == 404
    assert records_browser.get("/clusters/local/record/raw", params=asked(99)).status_code == 404


def test_nulls_bytes_and_lines(kept: barnabas.Broker, records_browser: TestClient) -> None:
    assert "The value is null." in html(records_browser, "record", **asked(1))
    assert "ff00" in html(records_browser, "record", **asked(2))
    assert "line\nline &lt;i&gt;\\x1b[31m" in html(records_browser, "record", **asked(3, value_as="text"))
    page = html(records_browser, "record", **asked(3, value_as="json"))
    assert b"line\nline <i>".hex() in page
    assert "Shown so, because it is not JSON" in page


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"topic": "kept", "partition": "0", "offset": "99"}, "There is no record at this offset."),
        ({"topic": "kept", "partition": "0", "offset": "x"}, "names no offset"),
        ({"topic": "kept", "offset": "1"}, "names no partition"),
        ({"topic": "kept", "partition": "7", "offset": "1"}, "has no partition 7"),
        ({"partition": "0", "offset": "1"}, "names no topic"),
        ({"topic": "absent", "partition": "0", "offset": "1"}, "Topic absent does not exist"),
    ],
)
def test_a_record_that_is_not_there(
    kept: barnabas.Broker, records_browser: TestClient, query: dict[str, str], sentence: str
) -> None:
    assert sentence in twin(records_browser, "record", **query)["record"]["error"]
    assert sentence in html(records_browser, "record", **query)
