"""The definitions as they are read, and that what is written from them is current."""

from __future__ import annotations

import write_stubs

from barnabas.protocol.api_keys import api
from barnabas.protocol.schema import (
    ENDLESS,
    NEVER,
    Versions,
    message_names,
    message_spec,
    parse_default,
    parse_versions,
    schema_index,
    snake_case,
)


def test_versions() -> None:
    assert parse_versions("3") == Versions(3, 3)
    assert parse_versions("3-9") == Versions(3, 9)
    assert parse_versions("3+") == Versions(3, ENDLESS)
    assert parse_versions("none") == parse_versions(None) == NEVER
    assert [v for v in range(12) if v in Versions(3, 9)] == list(range(3, 10))
    assert 0 not in NEVER


def test_snake_case() -> None:
    assert snake_case("ThrottleTimeMs") == "throttle_time_ms"
    assert snake_case("IsKRaftMigration") == "is_k_raft_migration"
    assert snake_case("SASLMechanism") == "sasl_mechanism"
    assert snake_case("From") == "from_"


def test_defaults() -> None:
    assert parse_default("int32", False, "0x7fffffff", False) == 2**31 - 1
    assert parse_default("int64", False, "-1", False) == -1
    assert parse_default("int16", False, 5, False) == 5
    assert parse_default("bool", False, "true", False) is True
    assert parse_default("bool", False, "false", False) is False
    assert parse_default("string", False, "null", True) is None
    assert parse_default("string", False, None, True) == ""
    assert parse_default("records", False, None, True) is None
    assert parse_default("uuid", False, None, False) == bytes(16)


def test_every_definition_is_whole() -> None:
    assert len(message_names()) == len(set(message_names())) == 278
    for name in message_names():
        spec = message_spec(name)
        assert spec.valid.low <= spec.valid.high
        for struct in [spec.root, *spec.structs.values()]:
            names = [field.name for field in struct.fields]
            assert len(names) == len(set(names))
            for field in struct.fields:
                assert field.versions != NEVER
                assert not field.is_struct or field.type in spec.structs
                assert (field.tag >= 0) == (field.tagged != NEVER)


def test_the_index_agrees_with_the_messages() -> None:
    for key in schema_index()["apis"]:
        described = api(int(key))
        for name in (described.request, described.response):
            spec = message_spec(name)
            assert spec.api_key == int(key)
            assert spec.valid == (described.min_version, described.max_version), name


def test_no_number_is_used_twice() -> None:
    kinds = [message_spec(name) for name in message_names()]
    for kind in ("request", "response", "metadata", "remote-metadata"):
        numbers = [spec.api_key for spec in kinds if spec.kind == kind]
        assert len(numbers) == len(set(numbers)), kind


def test_stubs_are_current() -> None:
    assert write_stubs.OUTPUT.read_text() == write_stubs.stubs(), "run tools/write_stubs.py"
