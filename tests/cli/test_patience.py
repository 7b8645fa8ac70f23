"""What a command says while a cluster does not answer."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from unittest import mock

import pytest
from click.testing import CliRunner

import barnabas
from barnabas.cli.patience import Patience, patience
from barnabas.client.cluster import Cluster
from barnabas.client.errors import BrokerNotAvailable, ConnectionLost, OtherProtocol, RequestTimedOut
from barnabas.client.other_protocols import TLS
from barnabas.main import command_group
from barnabas.protocol.errors import KafkaError
from tests.client.scripted_broker import CLOSE, ScriptedBroker


class Spoken(list[str]):
    """Collects lines; `event` is set with the first."""

    def __init__(self) -> None:
        super().__init__()
        self.event = threading.Event()

    def __call__(self, line: str) -> None:
        self.append(line)
        self.event.set()


@pytest.fixture
def silent() -> Iterator[tuple[str, int]]:
    """The address of somebody who accepts connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


def test_an_address_that_does_not_answer_is_named_once(silent: tuple[str, int]) -> None:
    spoken = Spoken()
    address = f"{silent[0]}:{silent[1]}"
    seams = Patience(30_000, speak=spoken, after_s=0).seams()
    cluster = Cluster(address, timeout_ms=300, identify=lambda *_: None, **seams)
    for _ in range(2):
        with pytest.raises(RequestTimedOut, match=re.escape(address)):
            cluster.any_connection()
    assert spoken == [f"no answer from {address} yet, waiting up to 30 s …"]


def test_an_answer_in_time_needs_no_words() -> None:
    spoken = Spoken()
    with (
        barnabas.Broker() as broker,
        Cluster(broker.bootstrap_servers, **Patience(30_000, speak=spoken).seams()) as cluster,
    ):
        cluster.metadata()
    assert spoken == []


def test_a_cluster_that_asks_to_try_again_is_waited_for() -> None:
    spoken = Spoken()
    pauses: list[float] = []
    sleep = Patience(5_000, speak=spoken, after_s=2, sleep=pauses.append).seams()["sleep"]
    for _ in range(4):
        sleep(1.0)
    assert pauses == [1.0] * 4
    assert spoken == ["the cluster is not ready to answer yet, waiting up to 5 s …"]


def test_nothing_is_said_but_to_a_terminal(silent: tuple[str, int]) -> None:
    assert patience(1000).seams() == {}
    with mock.patch("barnabas.cli.patience.on_terminal", return_value=True):
        assert set(patience(1000).seams()) == {"connect", "sleep"}


REFUSED = BrokerNotAvailable("cannot reach it: connection refused")


class Starting:
    """A cluster whose broker listens at the third attempt, on a clock of its own."""

    def __init__(self, attempts: int, failure: KafkaError = REFUSED) -> None:
        self.left = attempts
        self.failure = failure
        self.now = 0.0

    def connect(self, *_: object, **__: object) -> object:
        self.left -= 1
        if self.left > 0:
            raise self.failure
        return mock.Mock(closed=False)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def cluster(self, waiting: Patience) -> Cluster:
        seams = waiting.seams() | {"connect": self.connect}
        return Cluster("a:1", timeout_ms=10_000, clock=lambda: self.now, identify=lambda *_: None, **seams)


@pytest.mark.parametrize("failure", [REFUSED, ConnectionLost("the forwarder of a container's port closed it")])
def test_a_broker_that_is_about_to_start_is_waited_for(failure: KafkaError) -> None:
    spoken = Spoken()
    starting = Starting(attempts=8, failure=failure)
    waiting = Patience(10_000, speak=spoken, sleep=starting.sleep)
    waiting.await_broker(starting.cluster(waiting), "a:1,b:2")
    assert starting.left == 0
    assert spoken == ["no broker at a:1,b:2 yet, waiting up to 10 s …"]


def test_where_another_protocol_answers_no_broker_is_waited_for() -> None:
    starting = Starting(attempts=8, failure=OtherProtocol("a:1 is an HTTP server"))
    waiting = Patience(10_000, speak=Spoken(), sleep=starting.sleep)
    with pytest.raises(OtherProtocol):
        waiting.await_broker(starting.cluster(waiting), "a:1")
    assert starting.now == 0


def test_a_broker_that_does_not_start_in_time_is_an_error() -> None:
    starting = Starting(attempts=1_000)
    waiting = Patience(10_000, speak=Spoken(), sleep=starting.sleep)
    with pytest.raises(BrokerNotAvailable):
        waiting.await_broker(starting.cluster(waiting), "a:1")
    assert 8 < starting.now <= 10


@pytest.mark.parametrize(("options", "waits"), [([], False), (["--timeout-ms", "200"], True)])
def test_a_refused_connection_is_waited_for_only_if_a_time_is_given(options: list[str], waits: bool) -> None:
    with mock.patch("barnabas.cli.patience.Patience.await_broker") as await_broker:
        arguments = ["topic", "list", "-b", "127.0.0.1:1", *options]
        result = CliRunner().invoke(command_group(), arguments, prog_name="barnabas")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: cannot reach 127.0.0.1:1: connection refused (start a broker")
    assert await_broker.called is waits


@pytest.mark.parametrize(
    "words", ["topic list", "cluster status", "produce t", "consume t", "verify", "dlq list", "dlq redrive t.dlq"]
)
def test_every_command_says_what_it_found_instead_of_a_broker(words: str) -> None:
    """One attempt in each version of ApiVersions, and no retry."""
    with (
        ScriptedBroker(*[CLOSE] * 100) as there,
        mock.patch.object(
            Cluster.__init__, "__kwdefaults__", Cluster.__init__.__kwdefaults__ | {"identify": lambda *_: TLS}
        ),
    ):
        result = CliRunner().invoke(
            command_group(), [*words.split(), "-b", f"127.0.0.1:{there.port}"], prog_name="barnabas"
        )
    assert result.exit_code == 1
    assert result.stderr == (
        f"error: 127.0.0.1:{there.port} is a listener with TLS: set security.protocol to SSL or SASL_SSL (--command-config FILE has a"
        " client's settings)\n"
    )
    assert len(there.seen) == 2
