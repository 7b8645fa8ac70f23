"""Values of `listeners`, and what Apache Kafka 4.3.1 says about those that are not valid."""

from __future__ import annotations

import pytest

from barnabas.metadata.config_schema import ConfigError, ConfigType, parse_value
from barnabas.metadata.listener_values import check_listeners


def check(text: str) -> None:
    entries = parse_value("listeners", ConfigType.LIST, text)
    assert isinstance(entries, tuple)
    check_listeners(entries)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x", "Unable to parse a listener name from x"),
        ("FOO://h:1,x", "Unable to parse a listener name from x"),
        ("", "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"),
        (",", "Configuration 'listeners' values must not be empty."),
        ("PLAINTEXT://h:1,,CONTROLLER://h:2", "Configuration 'listeners' values must not be empty."),
    ],
)
def test_values_that_are_no_list_of_names(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check(text)
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PLAINTEXT://", "Unable to parse PLAINTEXT:// to a broker endpoint"),
        ("PLAINTEXT://h:port", "Unable to parse PLAINTEXT://h:port to a broker endpoint"),
        ("h:9092", "Unable to parse h:9092 to a broker endpoint"),
        ("PLAINTEXT://h h:1, CONTROLLER://h:2", "Unable to parse PLAINTEXT://h h:1 to a broker endpoint"),
        ("://h:1", "The provided listener name is null or empty string"),
        ("A://h:1, a://h:2", "Each listener must have a different name, listeners: [A://h:1, a://h:2]"),
    ],
)
def test_endpoints_that_do_not_parse(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check(text)
    assert str(raised.value) == f"Error creating broker listeners from '[{text}]': {why}"


@pytest.mark.parametrize(
    "text",
    [
        "PLAINTEXT://:9092",
        "plaintext://h:1,CONTROLLER://h:0",
        "A://[::1]:1 , B://[fe80::1%eth0]:-1",
        "A://h:1,A://h:1",  # Kafka's lists drop what is repeated to the letter
    ],
)
def test_values_that_are_valid(text: str) -> None:
    check(text)
