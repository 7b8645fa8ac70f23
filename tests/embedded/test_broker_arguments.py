"""What a Python caller passes: an argument of another type is one sentence that names it."""

from __future__ import annotations

from typing import Any

import pytest

import barnabas
from barnabas.embedded.broker_arguments import broker_config, setting_texts

NUMBERS = {"num.partitions"}
VALUES = "pass text, a number, a boolean or a list of them"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"port": "x"}, "port='x' is not a number: pass 1 to 65535, or 0 for a free one"),
        ({"port": None}, "port=None is not a number: pass 1 to 65535, or 0 for a free one"),
        ({"data_dir": 3}, "data_dir=3 is not a path: pass text or a pathlib.Path, or leave it out"),
        ({"data_dir": b"x"}, "data_dir=b'x' is not a path: pass text or a pathlib.Path, or leave it out"),
        ({"config": "x"}, 'config= is a str: pass a mapping of settings, such as {"num.partitions": 4}'),
        ({"config": NUMBERS}, 'config= is a set: pass a mapping of settings, such as {"num.partitions": 4}'),
        ({"config": {3: 1}}, '3 is not the name of a setting: pass a mapping such as {"num.partitions": 4}'),
        ({"config": {"num.partitions": None}}, f"num.partitions is None: {VALUES}"),
        ({"config": {"num.partitions": [NUMBERS]}}, f"num.partitions is a set: {VALUES}"),
    ],
)
def test_an_argument_of_another_type(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TypeError) as caught:
        barnabas.Broker(**arguments)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"name": 3}, TypeError, "3 is not the name of a topic: pass text"),
        ({"partitions": "3"}, TypeError, "partitions='3' is not a number: pass 1 or more"),
        ({"config": []}, TypeError, 'config= is a list: pass a mapping of settings, such as {"retention.ms": 60000}'),
        ({"config": {"retention.ms": None}}, TypeError, f"retention.ms is None: {VALUES}"),
        (
            {"config": {"retention.mss": 1}},
            barnabas.KafkaError,
            "INVALID_CONFIG: retention.mss is not a setting of a topic; did you mean retention.ms?",
        ),
    ],
)
def test_a_mistaken_argument_of_a_topic(arguments: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with barnabas.Broker() as broker:
        with pytest.raises(error) as caught:
            broker.create_topic(**{"name": "orders"} | arguments)
        broker.create_topic("orders")
    assert str(caught.value) == sentence


def test_values_become_the_text_of_a_properties_file() -> None:
    values = {"a": True, "b": 3, "c": 0.5, "d": ["x", 1, False], "e": ("y",), "f": "z"}
    assert setting_texts(values) == {"a": "true", "b": "3", "c": "0.5", "d": "x,1,false", "e": "y", "f": "z"}
    assert setting_texts(None) == {}


def test_a_broker_listens_on_loopback_unless_its_settings_say_otherwise() -> None:
    (listener,) = broker_config("/data", 9192, {}).listeners
    assert (listener.host, listener.port) == ("127.0.0.1", 9192)
    (listener,) = broker_config("/data", 0, {"listeners": "PLAINTEXT://localhost:9193"}).listeners
    assert (listener.host, listener.port) == ("localhost", 9193)
