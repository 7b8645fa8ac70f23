"""Bytes compared with kafka-python, for every message and version that it knows."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from typing import Any

import kafka.protocol
import pytest
from kafka.protocol.api_message import ApiMessage

from barnabas.protocol.messages import message_class
from barnabas.protocol.schema import message_names
from tests.protocol.samples import Sampler

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its way to read its own definitions
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name and "generate" not in module.name:
            importlib.import_module(module.name)
THEIRS: dict[str, Any] = {cls.__name__: cls for cls in ApiMessage.__subclasses__() if cls.__name__ in message_names()}


@pytest.mark.parametrize("name", sorted(THEIRS))
def test_kafka_python_reads_and_writes_the_same(name: str) -> None:
    cls, other = message_class(name), THEIRS[name]
    for version in range(cls.MIN_VERSION, min(cls.MAX_VERSION, other.max_version) + 1):
        for seed in range(2):
            ours = Sampler(f"{name} {version} {seed}").message(name, version)
            if name == "ApiVersionsResponse":
                ours.error_code = 0  # type: ignore[attr-defined]  # else kafka-python reads it as version 0
            encoded = ours.encode(version)
            theirs = other.decode(encoded, version=version)
            theirs._header = None
            written = bytes(theirs.encode(version=version))
            assert written == encoded
            assert cls.decode(written, version) == ours


def test_kafka_python_knows_most_apis() -> None:
    assert len(THEIRS) > 100
