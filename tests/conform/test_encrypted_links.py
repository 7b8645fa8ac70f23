"""What passes over the wires of three nodes under load: nothing that can be read with SASL_SSL, everything without TLS."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.cluster.relays import RelayedCluster, Relays
from tests.cluster.secured_nodes import SecuredNodes
from tests.cluster.topics import create_safe_topic
from tests.cluster.way_in import way_in

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

TOPIC = "topic-that-is-a-secret"
VALUE = b"record-that-is-a-secret-%d"
RECORDS = 300
PATIENCE_SECONDS = 60


def load(bootstrap_servers: str, library: dict[str, object]) -> None:
    """Write to every partition with acks=all, read everything in a group, and commit."""
    settings = {"bootstrap.servers": bootstrap_servers, **library}
    producer = Producer({**settings, "enable.idempotence": True, "linger.ms": 1})
    for number in range(RECORDS):
        producer.produce(TOPIC, VALUE % number, partition=number % 3)
    assert producer.flush(PATIENCE_SECONDS) == 0
    consumer = Consumer({**settings, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    read = set()
    while len(read) < RECORDS:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        assert message.error() is None, message.error()
        read.add(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
def test_a_listener_on_the_wire(protocol: str, tmp_path: Path) -> None:
    secured = SecuredNodes(tmp_path / "certificates", protocol)
    with Relays() as relays:
        with way_in.by(secured.client), RelayedCluster(tmp_path / "nodes", relays, secured) as cluster:
            create_safe_topic(cluster, TOPIC)
            load(cluster.bootstrap_servers, way_in.library)
        found = {name: [bytes(each) for each in streams] for name, streams in relays.recorded.items()}
    assert len(found) == 6
    secrets = {
        "topic": TOPIC.encode(),
        "record": VALUE[: VALUE.index(b"%")],
        "password": secured.password.encode(),
        "settings": b"min.insync.replicas",
    }
    seen = {
        what: {name for name, streams in found.items() if any(secret in each for each in streams)}
        for what, secret in secrets.items()
    }
    brokers, controllers = ({f"{role} {n}" for n in (1, 2, 3)} for role in ("broker", "controller"))
    if protocol == "SASL_SSL":
        assert seen == {what: set() for what in secrets}
        for name, streams in found.items():
            # Each connection is TLS from its first byte on: a handshake of version 3, both ways.
            assert all(each[:2] == b"\x16\x03" for each in streams if each), name
            assert sum(map(len, streams)) > 1_000, f"{name} has carried next to nothing"
        return
    # Each broker has got records from clients, and has given them to followers; controllers have the metadata of the topic.
    assert seen["record"] == brokers
    assert seen["topic"] >= brokers
    assert seen["topic"] & controllers
    assert seen["password"] == brokers | controllers
    copies = sum(each.count(secrets["record"]) for streams in found.values() for each in streams)
    assert copies >= 4 * RECORDS, "from the producer, to two followers, to the consumer"
