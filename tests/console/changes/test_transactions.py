"""Open transactions."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, Producer
from starlette.testclient import TestClient

import barnabas
from tests.console.conftest import PATIENCE_SECONDS
from tests.console.forms import carry_out, change, preview


def test_an_open_transaction_is_aborted(changed: barnabas.Broker, writer: TestClient) -> None:
    change(writer, "topic-create", name="paid")
    settings = {"bootstrap.servers": changed.bootstrap_servers, "transactional.id": "payments"}
    producer = Producer(settings)
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce("paid", "1")
    producer.flush(PATIENCE_SECONDS)
    shown = preview(writer, "transaction-abort", id="payments")
    assert (shown.data["destroys"], shown.rows[0]["status"], shown.rows[0]["state_before"]) == (
        "payments",
        "would be aborted",
        "Ongoing",
    )
    assert carry_out(writer, shown).rows[0]["status"] == "aborted"
    with pytest.raises(KafkaException):
        producer.commit_transaction(PATIENCE_SECONDS)


def test_what_is_not_there(writer: TestClient) -> None:
    assert "does not exist" in preview(writer, "transaction-abort", id="<b>").error
    change(writer, "topic-create", name="quiet")
    refused = preview(writer, "transaction-abort-hanging", partition="quiet:0", start_offset="5")
    assert "No transaction begins at offset 5 of quiet-0" in refused.error
    for fields in ({"partition": "quiet", "start_offset": "5"}, {"partition": "quiet:0", "start_offset": "x"}):
        assert preview(writer, "transaction-abort-hanging", **fields).status == 400
