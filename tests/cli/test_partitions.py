"""Partitions as commands name them."""

from __future__ import annotations

import click
import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.partitions import named_partitions, partitions_of
from barnabas.protocol.errors import KafkaError
from tests.cli.made_up_cluster import MadeUpAdmin


def named(*texts: str) -> list[str]:
    return [str(each) for each in partitions_of(MadeUpAdmin(), texts)]  # type: ignore[arg-type]


def test_all_of_a_topic_or_some() -> None:
    assert named("payments") == ["payments-0"]
    assert named("orders:4,0", "orders:4", "payments") == ["orders-0", "orders-4", "payments-0"]


def test_what_does_not_exist_is_an_error() -> None:
    with pytest.raises(Failure, match="topic payments has no partition 1"):
        named("payments:1")
    with pytest.raises(KafkaError, match="nope"):
        named("nope:0")
    with pytest.raises(ValueError, match="'orders:first' is not TOPIC or TOPIC:0,1"):
        named("orders:first")
    with pytest.raises(ValueError, match="'orders:' is not TOPIC or TOPIC:0,1"):
        named("orders:")


def test_an_argument_that_is_mistyped_is_wrong_usage() -> None:
    assert [str(each) for each in named_partitions(MadeUpAdmin(), ["orders:4"])] == ["orders-4"]  # type: ignore[arg-type]
    with pytest.raises(click.UsageError, match="'orders:first' is not TOPIC or TOPIC:0,1"):
        named_partitions(MadeUpAdmin(), ["orders:first"])  # type: ignore[arg-type]
