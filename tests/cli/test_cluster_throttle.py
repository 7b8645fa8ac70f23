"""`cluster throttle`: set for what moves, shown, and removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from barnabas.cli.session import Session
from barnabas.client.admin import ConfigResource, Reassignment, ResourceType, TopicPartition
from barnabas.client.replication_throttle import Moving, Throttle
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from tests.cli.made_up_cluster import MadeUpAdmin

AT = TopicPartition("t", 0)
NOTHING = Throttle({1: (None, None), 2: (None, None)}, {})


class Cluster(MadeUpAdmin):
    """Two brokers, with a move of t-0 from 1 to 2, or without."""

    def __init__(self, *, moves: bool = True, error: KafkaError | None = None) -> None:
        super().__init__()
        self.moving = {AT: Reassignment([1, 2], [2], [1])} if moves else {}
        self.throttle = NOTHING
        self._error = error
        self.asked: list[Any] = []

    def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        return self.moving

    def describe_throttle(self) -> Throttle:
        return self.throttle

    def set_throttle(
        self, rate: int, moves: Mapping[TopicPartition, Moving]
    ) -> dict[ConfigResource, KafkaError | None]:
        self.asked.append(dict(moves))
        self.throttle = Throttle({1: (rate, rate), 2: (rate, rate)}, {"t": ("0:1", "0:2")})
        return {ConfigResource(ResourceType.BROKER, "1"): self._error}

    def remove_throttle(self) -> dict[ConfigResource, KafkaError | None]:
        self.throttle = NOTHING
        return {ConfigResource(ResourceType.TOPIC, "t"): self._error}


def run(cluster: MadeUpAdmin, *arguments: str) -> Result:
    with mock.patch.object(Session, "admin", return_value=cluster):
        return CliRunner().invoke(command_group(), ["cluster", "throttle", *arguments], prog_name="barnabas")


RATES = "BROKER  LEADER-RATE  FOLLOWER-RATE\n"


def test_a_rate_holds_for_what_moves() -> None:
    cluster = Cluster()
    shown = f"{RATES}1       2000000      2000000\n2       2000000      2000000\n\nTOPIC  LEADERS  FOLLOWERS\nt      0:1      0:2\n"
    assert run(cluster, "2MB/s").stdout == shown
    assert cluster.asked == [{AT: Moving([1], [2])}]
    assert run(cluster).stdout == shown


def test_off_removes_it() -> None:
    cluster = Cluster()
    run(cluster, "2MB")
    assert run(cluster, "off").stdout == f"{RATES}1       -            -\n2       -            -\n"


def test_without_a_move_nothing_would_be_throttled() -> None:
    result = run(Cluster(moves=False), "2MB")
    assert (result.exit_code, "no replicas are being moved" in result.stderr) == (1, True)


def test_a_rate_that_is_none() -> None:
    result = run(Cluster(), "fast")
    assert (result.exit_code, "'fast' is not a valid size" in result.stderr) == (2, True)


@pytest.mark.parametrize("rate", ["20", "20/s", "1023"])
def test_a_small_number_needs_its_unit(rate: str) -> None:
    cluster, number = Cluster(), rate.removesuffix("/s")
    result = run(cluster, rate)
    assert (result.exit_code, cluster.asked) == (2, [])
    assert f"{number} is {number} bytes a second: write {number}MB, or {number}B if you mean that" in result.stderr
    assert [run(cluster, each).exit_code for each in ("20B", "20B/s", "0.5k", "1024")] == [0, 0, 0, 0]


@pytest.mark.parametrize(("rate", "place"), [("2MB", "broker 1"), ("off", "topic t")])
def test_an_error_has_its_place(rate: str, place: str) -> None:
    result = run(Cluster(error=error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not allowed")), rate)
    assert (result.exit_code, f"{place}: not allowed" in result.stderr) == (1, True)
