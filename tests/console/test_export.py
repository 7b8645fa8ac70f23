"""All records of a search as a file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import barnabas
from barnabas.cli.export_parquet import count_rows, read_rows
from barnabas.client.admin import Admin, TopicPartition
from barnabas.main import command_group
from tests.console.writing import Given, create, numbered, write

ADDRESS = "/clusters/local/messages/export."


@pytest.fixture(scope="module")
def filled(records_broker: barnabas.Broker) -> barnabas.Broker:
    create(records_broker.bootstrap_servers, "exported", 2)
    write(records_broker.bootstrap_servers, "exported", [*numbered(700), *numbered(20, 1)])
    create(records_broker.bootstrap_servers, "formulas")
    write(
        records_broker.bootstrap_servers, "formulas", [Given(b"=cmd()", b"+1"), Given(b'a,"b\n', b"\xff"), Given(b"{")]
    )
    return records_broker


def test_json_lines_are_those_of_the_command(filled: barnabas.Broker, records_browser: TestClient) -> None:
    answer = records_browser.get(f"{ADDRESS}jsonl", params={"topic": "exported", "partitions": "0", "order": "oldest"})
    assert answer.headers["content-disposition"] == 'attachment; filename="exported.jsonl"'
    words = ["consume", "exported", "-p", "0", "-e", "-f", "json", "-b", filled.bootstrap_servers]
    assert answer.text == CliRunner().invoke(command_group(), words, prog_name="barnabas").stdout


def test_a_filter_chooses_the_records(filled: barnabas.Broker, records_browser: TestClient) -> None:
    answer = records_browser.get(f"{ADDRESS}jsonl", params={"topic": "exported", "filter": "value.n >= 690"})
    assert sorted(json.loads(json.loads(line)["value"])["n"] for line in answer.text.splitlines()) == list(
        range(690, 700)
    )


def test_a_spreadsheet_gets_no_formulas(filled: barnabas.Broker, records_browser: TestClient) -> None:
    answer = records_browser.get(f"{ADDRESS}csv", params={"topic": "formulas", "order": "oldest"})
    head, *rows = csv.reader(io.StringIO(answer.text, newline=""))
    assert head[:6] == ["PARTITION", "OFFSET", "TIME", "KEY", "VALUE", "HEADERS"]
    assert [row[4] for row in rows] == ["'=cmd()", 'a,"b\n', "{"]
    assert rows[0][3] == "2b31" or rows[0][3] == "'+1"


def test_the_last_line_says_what_is_missing(filled: barnabas.Broker, records_browser: TestClient) -> None:
    create(filled.bootstrap_servers, "cut-off")
    write(filled.bootstrap_servers, "cut-off", numbered(10))
    with Admin(filled.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition("cut-off", 0): 4})
    *_, last = records_browser.get(f"{ADDRESS}jsonl", params={"topic": "cut-off", "offset": "0"}).text.splitlines()
    assert "4 offsets that retention" in " ".join(json.loads(last)["not_read"])
    *_, last = records_browser.get(f"{ADDRESS}csv", params={"topic": "cut-off", "offset": "0"}).text.splitlines()
    assert last.startswith("# Read 10 of 10 offsets")


def test_parquet_has_the_rows_of_an_export(
    filled: barnabas.Broker, records_browser: TestClient, tmp_path: Path
) -> None:
    answer = records_browser.get(
        f"{ADDRESS}parquet", params={"topic": "exported", "order": "oldest", "partitions": "0"}
    )
    (tmp_path / "exported.parquet").write_bytes(answer.content)
    assert count_rows(tmp_path / "exported.parquet") == 700
    rows = list(read_rows(tmp_path / "exported.parquet", "exported", 0))
    assert [each.offset for each in rows] == list(range(700))
    assert (rows[699].key, rows[699].value, rows[699].timestamp_ms) == (b"k4", b'{"n": 699}', 1_700_000_699_000)
    assert answer.headers["content-disposition"] == 'attachment; filename="exported.parquet"'


def test_parquet_says_in_its_metadata_what_is_missing(filled: barnabas.Broker, records_browser: TestClient) -> None:
    answer = records_browser.get(f"{ADDRESS}parquet", params={"topic": "absent"})
    with pq.ParquetFile(io.BytesIO(answer.content)) as file:
        assert b"absent does not exist" in file.metadata.metadata[b"not_read"]
        assert file.metadata.num_rows == 0


def test_what_cannot_be_exported(filled: barnabas.Broker, records_browser: TestClient) -> None:
    assert records_browser.get(f"{ADDRESS}jsonl").status_code == 400
    assert records_browser.get(f"{ADDRESS}exe", params={"topic": "exported"}).status_code == 404
    text = records_browser.get(f"{ADDRESS}jsonl", params={"topic": "absent"}).text
    assert "absent does not exist" in json.loads(text)["not_read"][0]
    text = records_browser.get(f"{ADDRESS}jsonl", params={"topic": "exported", "filter": "value.n >"}).text
    assert "cannot be read at character 10" in json.loads(text)["not_read"][0]
