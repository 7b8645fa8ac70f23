"""The reads after the last write, while their broker closes connections without a response."""

from __future__ import annotations

import confluent_kafka
import pytest

import barnabas as package
from barnabas.client.admin import Admin
from barnabas.client.errors import ConnectionLost
from barnabas.verify import final_reads
from barnabas.verify.consumer import Layout

pytestmark = pytest.mark.slow


def test_the_ends_are_asked_again_when_the_broker_closes_the_connection(barnabas: package.Broker) -> None:
    barnabas.create_topic("t", 2)
    producer = confluent_kafka.Producer({"bootstrap.servers": barnabas.bootstrap_servers})
    for partition in (0, 1):
        for _ in range(7):
            producer.produce("t", b"a", partition=partition)
    producer.flush()
    layout = Layout(["t"], 2)
    fault = barnabas.drop_response_after_write("Metadata", times=2)
    assert final_reads._ends(Admin(barnabas.bootstrap_servers), layout, (0, 1), 60) == {0: 7, 1: 7}
    assert fault.hits == 2
    barnabas.drop_response_after_write("Metadata")
    with pytest.raises(ConnectionLost):
        final_reads._ends(Admin(barnabas.bootstrap_servers), layout, (0, 1), 0)
