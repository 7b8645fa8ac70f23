"""Quotas."""

from __future__ import annotations

from starlette.testclient import TestClient

import barnabas
from tests.console.forms import carry_out, change, preview
from tests.console.reading import printed


def test_quotas_are_set_and_deleted(changed: barnabas.Broker, writer: TestClient) -> None:
    fields = {"client-id": "<b>", "default-user": "1", "quotas": "consumer_byte_rate=1000\nproducer_byte_rate=2000"}
    shown = preview(writer, "quota-set", **fields)
    words = (
        "quota",
        "set",
        "--client-id",
        "<b>",
        "--default",
        "user",
        "consumer_byte_rate=1000",
        "producer_byte_rate=2000",
        "-d",
    )
    assert shown.rows == printed(changed.bootstrap_servers, *words)
    assert carry_out(writer, shown).status == 200
    there = {
        each["quota"] for each in printed(changed.bootstrap_servers, "quota", "list") if each["client_id"] == "<b>"
    }
    assert there == {"consumer_byte_rate", "producer_byte_rate"}
    whose = {"client-id": "<b>", "default-user": "1"}
    shown = preview(writer, "quota-delete", **whose, quotas="consumer_byte_rate")
    assert shown.data["destroys"] == "client-id <b>, any user"
    carry_out(writer, shown)
    change(writer, "quota-delete", **whose)
    assert "has no quotas" in preview(writer, "quota-delete", **whose).error


def test_what_is_not_a_quota(writer: TestClient) -> None:
    for fields in (
        {"quotas": "consumer_byte_rate=1"},
        {"user": "a"},
        {"user": "a", "quotas": "no_such=1"},
        {"user": "a", "quotas": "consumer_byte_rate=nan"},
        {"user": "a", "ip": "10.0.0.1", "quotas": "connection_creation_rate=1"},
        {"user": "a", "default-user": "1", "quotas": "consumer_byte_rate=1"},
    ):
        refused = preview(writer, "quota-set", **fields)
        assert (refused.status, bool(refused.error)) == (400, True)
