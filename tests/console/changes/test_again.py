"""A record again, with changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

import barnabas
from barnabas.client.admin import Admin
from barnabas.console.app import Console
from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.audit_log import AuditLog
from barnabas.console.changes.again import fields_of
from barnabas.decoding.decoder import Decoder
from barnabas.decoding.masks import MaskRule, Masks
from barnabas.records.record import Record
from tests.console.forms import JSON, Reply, address, carry_out, change, send
from tests.console.reading import html, twin

MASKS = Masks([MaskRule(("hidden",), ("value.card", "key", "headers.token"))])


def form(browser: TestClient, topic: str, offset: int | str) -> Reply:
    query = {"topic": topic, "partition": "0", "offset": str(offset)}
    answer = browser.get(address("record-again"), params=query, headers=JSON)
    return Reply(answer.status_code, answer.json())


def values(shown: Reply) -> dict[str, str]:
    return {each["name"]: each["value"] for each in shown.data["fields"]}


def test_a_record_again(writer: TestClient) -> None:
    change(writer, "topic-create", name="repeated")
    fields = {"key": "k", "value": '{"a": 1}\n', "headers": "source=shop\nempty", "partition": "0"}
    change(writer, "record-produce", topic="repeated", **fields)
    page = html(writer, "record", topic="repeated", partition="0", offset="0")
    assert "change/record-again?topic=repeated&amp;partition=0&amp;offset=0" in page
    assert "record-again" not in html(writer, "messages", topic="repeated")
    shown = form(writer, "repeated", 0)
    filled = values(shown)
    assert {name: filled[name] for name in ("key", "value", "headers")} == {
        name: fields[name] for name in ("key", "value", "headers")
    }
    assert filled["timestamp"] == filled["partition"] == ""
    sent = send(writer, "record-again", {**filled, "value": '{"a": 2}\n', "token": shown.data["token"]})
    assert carry_out(writer, sent).rows[0]["offset"] == 1
    assert twin(writer, "record", topic="repeated", partition="0", offset="1")["record"]["value"] == '{"a": 2}\n'


def test_a_record_that_is_not_there(writer: TestClient) -> None:
    change(writer, "topic-create", name="repeated-absent")
    for topic, offset, sentence in (
        ("repeated-absent", 7, "There is no record at this offset."),
        ("repeated-absent", "x", "The address names no offset."),
        ("nowhere", 0, "does not exist"),
    ):
        assert sentence in form(writer, topic, offset).error


@pytest.fixture(scope="module")
def masking(changed: barnabas.Broker) -> Iterator[TestClient]:
    cluster = AskedCluster("local", lambda: Admin(changed.bootstrap_servers), Decoder(None, MASKS))
    with TestClient(Console([cluster], audit=AuditLog()).app(), base_url="http://localhost") as browser:
        yield browser


def test_what_is_masked_is_not_in_the_form(writer: TestClient, masking: TestClient) -> None:
    change(writer, "topic-create", name="hidden")
    change(writer, "record-produce", topic="hidden", key="4111", value='{"card": "4111"}', headers="token=4111\nh=1")
    query = {"topic": "hidden", "partition": "0", "offset": "0"}
    assert "4111" not in masking.get(address("record-again"), params=query).text
    shown = form(masking, "hidden", 0)
    assert [values(shown)[name] for name in ("key", "value", "headers")] == ["", "", "h=1"]
    assert len(shown.data["notes"]) == 3


def test_what_a_form_cannot_bring_back() -> None:
    record = Record(0, 0, b"a\nb", b"a\r\nb", [("", b"x"), ("a=b", b"x"), ("bytes", b"\xff"), ("null", None)])
    texts, notes = fields_of(record, None)
    assert texts == {"key": "YQpi", "key_as": "base64", "value": "YQ0KYg==", "value_as": "base64", "headers": "null"}
    assert len(notes) == 3
    assert fields_of(Record(0, 0, b"", None, []), None) == (
        {"tombstone": "1"},
        ["The key is empty, and this form writes null in its place"],
    )
    texts, notes = fields_of(Record(0, 0, b"k", b"x" * 70_000, []), None)
    assert (texts["key"], "value" in texts) == ("k", False)
    assert notes == ["The record is too large for a form: the value is left out"]
