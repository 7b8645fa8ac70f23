"""A secured broker in this process, and clients of three projects that log in by what it returns."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, KafkaError, Producer

import barnabas as package
from barnabas.client.admin import Admin
from barnabas.client.properties import read_properties
from barnabas.security.acls import AclFilter
from barnabas.security.client_security import client_security
from tests.embedded.orders_topic import send

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def barnabas_security() -> Mapping[str, Any]:
    return {
        "security": "SASL_SSL",
        "users": {"alice": "alice-secret", "bob": "bob-secret"},
        "acls": [
            "--allow-principal User:alice --operation write --operation create --topic orders",
            "--allow-principal User:bob --operation read --topic orders",
            "--allow-principal User:bob --operation read --group shop",
        ],
    }


def test_acls_decide_and_a_reset_keeps_them(barnabas: package.Broker) -> None:
    for round_ in range(2):
        alice = Producer({**barnabas.librdkafka_settings("alice", mechanism="SCRAM-SHA-512"), "linger.ms": 0})
        assert send(alice) == 0, round_
        settings = barnabas.librdkafka_settings("bob")
        bob = Producer({**settings, "linger.ms": 0})
        failed = send(bob)
        assert isinstance(failed, KafkaError)
        assert failed.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        consumer = Consumer({**settings, "group.id": "shop", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        assert message.value() == b"teapot"
        consumer.close()
        with Admin(barnabas.bootstrap_servers, security=client_security(barnabas.client_settings())) as admin:
            assert len(admin.list_acls(AclFilter())) == 4
        barnabas.reset()


@pytest.mark.asyncio
async def test_other_clients(barnabas: package.Broker) -> None:
    settings = barnabas.client_settings("alice")
    login: dict[str, Any] = {
        "security_protocol": settings["security.protocol"],
        "ssl_context": ssl.create_default_context(cafile=settings["ssl.truststore.location"]),
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "alice-secret",
    }
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=barnabas.bootstrap_servers, **login) as producer:
        assert (await producer.send_and_wait("orders", b"one teapot")).offset == 0
    admin = kafka.KafkaAdminClient(bootstrap_servers=barnabas.bootstrap_servers, **login)
    assert "orders" in admin.list_topics()
    admin.close()


def test_certificates_are_users() -> None:
    acls = ["--allow-principal User:alice --operation all --topic orders"]
    with package.Broker(security="SSL", users={"alice": "unused"}, acls=acls) as broker:
        assert send(Producer({**broker.librdkafka_settings("alice"), "linger.ms": 0})) == 0
        trust = broker.client_settings("alice")["ssl.truststore.location"]
        plain = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "security.protocol": "SSL", "ssl.ca.location": trust,
             "message.timeout.ms": 1000, "log_level": 0}
        )  # fmt: skip
        failed = send(plain)
        assert isinstance(failed, KafkaError)
        assert failed.code() == KafkaError._MSG_TIMED_OUT
    with pytest.raises(FileNotFoundError):
        read_properties(trust)


def test_listeners_are_chosen_once() -> None:
    broker = package.Broker(config={"listeners": "PLAINTEXT://127.0.0.1:0"}, security="SASL_PLAINTEXT")
    with pytest.raises(package.ConfigError, match=r"^listeners and security= both choose the listeners"):
        broker.start()
