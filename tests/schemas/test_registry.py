"""The client against a registry of the published API."""

from __future__ import annotations

import pickle

import pytest

from barnabas.schemas.errors import (
    IncompatibleSchema,
    InvalidSchema,
    RegistryError,
    RegistryNotAvailable,
    SchemaNotFound,
)
from barnabas.schemas.registry import SchemaRegistry
from barnabas.schemas.schema import JSON, PROTOBUF, Reference, Schema
from barnabas.schemas.settings import RegistrySettings

INT, LONG, TEXT = Schema('"int"'), Schema('"long"'), Schema('"string"')


class Client(SchemaRegistry):
    """A client whose time the test moves; waits are kept and take no time."""

    def __init__(self, url: str, **options: object) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        super().__init__(
            RegistrySettings.of({"url": url, **{name.replace("_", "."): value for name, value in options.items()}}),
            self.waits.append,
            lambda: self.now,
        )


def test_routes(server):
    client = Client(server.url)
    assert client.register("orders-value", INT) == 1
    assert client.register("orders/è value", INT) == 1
    assert client.register("orders-value", Schema("{}", JSON)) == 2
    assert client.by_id(1) == INT
    assert client.by_id(2) == Schema("{}", JSON)
    assert sorted(client.versions_of_id(1)) == [("orders-value", 1), ("orders/è value", 1)]
    assert client.subjects() == ["orders-value", "orders/è value"]
    assert client.versions("orders-value") == [1, 2]
    found = client.version("orders-value", 1)
    assert (found.subject, found.version, found.schema_id, found.schema) == ("orders-value", 1, 1, INT)
    assert client.version("orders-value").version == 2
    assert client.lookup("orders-value", Schema(' "int"')).version == 1


def test_references_and_protobuf(server):
    client = Client(server.url)
    client.register("money", INT)
    schema = Schema("aGVsbG8=", PROTOBUF, (Reference("money.proto", "money", 1),))
    assert client.by_id(client.register("order", schema)) == schema


def test_what_does_not_change_is_asked_for_once(server):
    client = Client(server.url, cache_latest_ttl_sec=60)
    server.add("orders", '"int"')
    for _ in range(3):
        client.register("orders", INT)
        client.by_id(1)
        client.version("orders", 1)
        client.version("orders")
        client.versions("orders")
        client.lookup("orders", INT)
    assert len(server.requests) == 6 == len(set(server.requests))


def test_the_latest_version_expires(server):
    client = Client(server.url, cache_latest_ttl_sec=60)
    server.add("orders", '"int"')
    assert client.version("orders").version == 1
    server.add("orders", '"long"')
    client.now = 59.9
    assert (client.version("orders").version, client.versions("orders")) == (1, [1, 2])
    client.now = 60.0
    assert client.version("orders").version == 2


def test_a_client_sees_what_it_registers(server):
    client = Client(server.url)
    client.register("orders", INT)
    assert (client.version("orders").version, client.versions("orders")) == (1, [1])
    client.register("orders", LONG)
    assert (client.version("orders").version, client.versions("orders")) == (2, [1, 2])


def test_what_is_missing_is_asked_for_again_after_ten_seconds(server):
    client = Client(server.url)
    for now in (0.0, 9.9):
        client.now = now
        with pytest.raises(SchemaNotFound, match=rf"{server.url} does not have schema 1 \(40403: Schema 1 not found\)"):
            client.by_id(1)
    assert len(server.requests) == 1
    server.add("orders", '"int"')
    client.now = 10.0
    assert client.by_id(1) == INT


def test_missing_subjects_and_versions(server):
    client = Client(server.url)
    with pytest.raises(SchemaNotFound, match=r"version latest of subject orders \(40401"):
        client.version("orders")
    server.add("orders", '"int"')
    with pytest.raises(SchemaNotFound, match=r"version 7 of subject orders \(40402"):
        client.version("orders", 7)
    with pytest.raises(SchemaNotFound, match=r"the schema in subject orders \(40403"):
        client.lookup("orders", LONG)


def test_schemas_that_the_registry_rejects(server):
    client = Client(server.url)
    server.add("orders", '"int"')
    server.frozen.add("orders")
    with pytest.raises(
        IncompatibleSchema, match=r"a new version of subject orders, which is incompatible.*Change the schema"
    ):
        client.register("orders", TEXT)
    with pytest.raises(InvalidSchema, match="the schema is not valid: Either the input schema"):
        client.register("others", Schema("{"))


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("http://", {"basic_auth_user_info": "me:p:w"}),
        ("http://me:p%3Aw@", {}),
    ],
)
def test_basic_credentials(server, url, options):
    server.authorization = "Basic bWU6cDp3"
    server.add("orders", '"int"')
    client = Client(server.url.replace("http://", url), **options)
    assert client.by_id(1) == INT
    assert "p:w" not in repr(client) + repr(client.settings) + client.name


def test_a_token_and_wrong_credentials(server):
    server.authorization = "Bearer secret"
    server.add("orders", '"int"')
    assert Client(server.url, bearer_auth_token="secret").by_id(1) == INT
    with pytest.raises(RegistryError, match="answers 401 to a request for schema 1: give credentials") as refused:
        Client(server.url, bearer_auth_token="wrong").by_id(1)
    assert "wrong" not in str(refused.value)


def test_errors_of_the_server_and_lost_connections_are_retried(server):
    server.add("orders", '"int"')
    server.faults = [500, 503, -1, 429, 0]
    client = Client(server.url, max_retries=4, retries_wait_ms=100, retries_max_wait_ms=300)
    assert client.by_id(1) == INT
    assert client.waits == [0.1, 0.2, 0.3, 0.3]


def test_a_registry_that_does_not_answer(server):
    client = Client(server.url, max_retries=1)
    server.faults = [500, 500]
    with pytest.raises(RegistryNotAvailable) as refused:
        client.by_id(1)
    assert str(refused.value) == (
        f"the schema registry does not answer ({server.url}: it answers 500 Internal Server Error): start it, correct its "
        "address, or use a folder of schemas"
    )
    # That it did not answer is not kept.
    server.add("orders", '"int"')
    assert client.by_id(1) == INT


def test_other_addresses_are_tried_and_the_one_that_answers_comes_first(server):
    server.add("orders", '"int"')
    client = Client(f"http://127.0.0.1:1,{server.url}/", max_retries=0)
    assert client.by_id(1) == INT
    assert client.versions("orders") == [1]
    with pytest.raises(RegistryNotAvailable, match=r"http://127.0.0.1:1: connection refused\)"):
        Client("http://127.0.0.1:1", max_retries=0).by_id(1)


def test_an_address_of_something_else(server):
    with pytest.raises(RegistryError, match="answers 404"):
        Client(server.url + "/elsewhere").by_id(1)


def test_a_client_is_pickled_without_its_caches(server):
    server.add("orders", '"int"')
    client = Client(server.url)
    client.by_id(1)
    copy = pickle.loads(pickle.dumps(client))
    assert copy.settings == client.settings
    copy.by_id(1)
    assert len(server.requests) == 2
