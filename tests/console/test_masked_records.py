"""No address of the console tells a masked field."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

import barnabas
from barnabas.client.admin import Admin
from barnabas.console.app import Console
from barnabas.console.asked import Asked
from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.links import Links
from barnabas.console.sampler import Sampler
from barnabas.decoding.decoder import FORMATS, Decoder
from barnabas.decoding.masks import MaskRule, Masks
from tests.console.reading import twin
from tests.console.writing import Given, create, write

SECRET = "4111222233334444"
MASKS = Masks([MaskRule(("mask*",), ("value.card.number", "key", "headers.token"))])
CARD = json.dumps({"card": {"number": SECRET}, "country": "DE"}).encode()


@pytest.fixture(scope="module")
def masked(records_broker: barnabas.Broker) -> Iterator[TestClient]:
    bootstrap = records_broker.bootstrap_servers
    create(bootstrap, "masked")
    key, headers = SECRET.encode(), [("token", SECRET.encode()), ("h", b"1")]
    write(
        bootstrap,
        "masked",
        [Given(CARD, key, headers=headers), Given(b"not json " + key, key, headers=headers), Given(None, key)],
    )
    cluster = AskedCluster("local", lambda: Admin(bootstrap), Decoder(None, MASKS))
    with TestClient(Console([cluster]).app(), base_url="http://localhost") as client:
        yield client


RECORD = "record?topic=masked&partition=0&offset=0"
ADDRESSES = [
    "messages?topic=masked", "messages?topic=masked&details=1&control=1", 'messages?topic=masked&filter=value.country == "DE"',
    f'messages?topic=masked&filter=value.card.number != "{SECRET[:4]}"', "messages/export.jsonl?topic=masked",
    "messages/export.csv?topic=masked", RECORD, f"{RECORD}&all=1", "record?topic=masked&partition=0&offset=1",
    *(f"messages?topic=masked&key_as={each}&value_as={each}" for each in FORMATS),
    *(f"{RECORD}&key_as={each}&value_as={each}" for each in FORMATS),
    *(f"messages/export.csv?topic=masked&key_as={each}&value_as={each}" for each in FORMATS),
    *(f"record/raw?topic=masked&partition=0&offset={offset}&part={part}" for offset in (0, 1) for part in ("key", "value")),
]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_address_tells_it(masked: TestClient, address: str) -> None:
    for headers in ({}, {"accept": "application/json"}):
        answer = masked.get(f"/clusters/local/{address}", headers=headers)
        assert answer.status_code == 200, answer.text
        assert "(masked)" in answer.text
        for each in (SECRET, SECRET.encode().hex(), "NDExMTIyMjIzMzMzNDQ0N"):
            assert each not in answer.text


def test_what_is_shown(masked: TestClient) -> None:
    found = twin(masked, "messages", topic="masked", order="oldest")
    assert [each.get("value_data") for each in found["messages"]] == [
        {"card": {"number": "(masked)"}, "country": "DE"},
        "(masked)",
        None,
    ]
    assert found["read"]["masked"] == ["value.card.number", "key", "headers.token"]
    assert len(twin(masked, "messages", topic="masked", filter='value.country == "DE"')["messages"]) == 1
    assert twin(masked, "messages", topic="masked", filter=f'value.card.number == "{SECRET}"')["messages"] == []
    assert len(twin(masked, "messages", topic="masked", header="h:1")["messages"]) == 2
    assert len(twin(masked, "messages", topic="masked", header="token")["messages"]) == 2


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"key": SECRET}, "The keys of topic masked are masked"),
        ({"key": SECRET, "partitioner": "murmur2_random"}, "The keys of topic masked are masked"),
        ({"header": f"token:{SECRET}"}, "Header token of topic masked is masked"),
    ],
)
def test_a_filter_that_would_tell_it_is_refused(masked: TestClient, query: dict[str, str], sentence: str) -> None:
    found = twin(masked, "messages", topic="masked", **query)
    assert sentence in found["messages"]["error"]


def test_the_live_end_is_masked(records_broker: barnabas.Broker, masked: TestClient) -> None:
    cluster = AskedCluster("local", lambda: Admin(records_broker.bootstrap_servers), Decoder(None, MASKS))

    async def first() -> str:
        asked = Asked(cluster, Sampler(cluster), Links(""), {"topic": "masked"}, 0)
        async with contextlib.aclosing(Console([cluster]).tail(asked)) as events:
            return await anext(events)

    event = asyncio.run(first())
    cluster.close()
    assert "(masked)" in event
    assert SECRET not in event
