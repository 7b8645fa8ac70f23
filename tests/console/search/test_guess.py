"""Formats that fit a topic, before a filter asks about its records."""

from __future__ import annotations

import msgpack

import barnabas
from barnabas.client.admin import Admin
from barnabas.console.search.guess import with_formats
from barnabas.console.search.query import Query
from barnabas.console.search.search import run
from barnabas.decoding.decoder import Decoder
from tests.console.writing import Given, create, write


def test_a_filter_sees_records_in_the_format_that_fits(records_broker: barnabas.Broker) -> None:
    create(records_broker.bootstrap_servers, "packed")
    write(
        records_broker.bootstrap_servers, "packed", [Given(msgpack.packb({"n": each}), b"\xff") for each in range(30)]
    )
    query = Query("packed", filter="value.n == 7")
    with Admin(records_broker.bootstrap_servers) as admin:
        guessed = with_formats(admin, query, Decoder(), 0)
        assert (guessed.key_as, guessed.value_as) == ("hex", "msgpack")
        assert [each.record.offset for each in run(admin, guessed, Decoder(), 0).found] == [7]
        chosen = Query("packed", key_as="text", value_as="hex")
        assert with_formats(admin, chosen, Decoder(), 0) is chosen
