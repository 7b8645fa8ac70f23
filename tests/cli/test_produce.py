"""`produce`: topics that the broker does not create, Ctrl-C after a record that was not produced, and how many records were."""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterator
from unittest import mock

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.failure import Failure
from barnabas.cli.output import TableOutput
from barnabas.cli.producer_run import ProducerRun
from barnabas.cli.record_reader import Given
from barnabas.cli.session import Session
from barnabas.client.admin import Admin
from barnabas.client.topics import NewTopic
from barnabas.main import command_group

NO_CREATION = "does not exist, and the broker does not create topics (auto.create.topics.enable=false)"


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker(config={"auto.create.topics.enable": "false"}) as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 1, 1), NewTopic("latest", 1, 1, {"cleanup.policy": "compact"})])
        yield running


def run(broker: barnabas.Broker, command: str, given: str | io.BytesIO) -> Result:
    environment = {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
    return CliRunner().invoke(command_group(), shlex.split(command)[1:], input=given, env=environment)


def test_a_topic_that_will_not_be_created_is_an_error_at_once(broker: barnabas.Broker) -> None:
    # Its timeout of 30 s would pass in librdkafka, which is not even imported before the topic is known.
    with mock.patch("barnabas.cli.producer_run.ProducerRun.__init__", side_effect=AssertionError):
        result = run(broker, "barnabas produce missing --allow-auto-topic-creation", "a\n")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"error: topic missing {NO_CREATION} (`barnabas topic create missing`)\n"


def test_a_missing_topic_comes_with_the_command_that_creates_it(broker: barnabas.Broker) -> None:
    assert run(broker, "barnabas produce oders", "a\n").stderr == (
        "error: topic oders does not exist; did you mean orders?"
        " (`barnabas topic list` shows which exist, `barnabas topic create oders` creates it)\n"
    )


def test_so_is_one_that_a_record_names(broker: barnabas.Broker) -> None:
    result = run(broker, "barnabas produce -f '%t %v\\n' --allow-auto-topic-creation", "orders a\nmissing b\n")
    assert result.exit_code == 1
    assert result.stderr == f"error: topic missing {NO_CREATION} (1 record was produced before)\n"


def test_a_mistyped_topic_of_a_record_names_the_option(broker: barnabas.Broker) -> None:
    result = run(broker, "barnabas produce -f '%t %v\\n'", "oders a\n")
    assert result.stderr == (
        "error: topic oders does not exist; --allow-auto-topic-creation lets the broker create it"
        " (no record was produced before)\n"
    )


def test_an_existing_topic_may_be_named_with_the_option(broker: barnabas.Broker) -> None:
    result = run(broker, "barnabas produce orders --allow-auto-topic-creation", "a\n")
    assert result.output == "produced 1 record (orders-0: 1)\n"


def test_a_rejected_record_is_said_once(broker: barnabas.Broker) -> None:
    result = run(broker, "barnabas produce latest", "a\n")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "error: the record was not produced: topic latest: invalid record (a compacted topic"
    )


def test_a_person_is_told_of_a_rejected_record_before_the_next_one(broker: barnabas.Broker) -> None:
    def typed() -> Iterator[Given]:
        yield Given(b"{}", b"customer-1")
        yield Given(b"without a key")
        raise AssertionError("the next record was waited for")

    session = Session(broker.bootstrap_servers, {}, None, TableOutput())
    run = ProducerRun(session, "latest", (), {})
    run.send_all(typed(), typed=True)
    with pytest.raises(Failure, match=r"^1 of 2 records was not produced: record 2: topic latest: invalid record"):
        run.report()


def test_ctrl_c_after_a_rejected_record_is_one_statement(broker: barnabas.Broker) -> None:
    class Interrupted(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            if line := self.readline():
                return line
            raise KeyboardInterrupt

    result = run(broker, "barnabas produce latest", Interrupted(b"without a key\n"))
    assert result.exit_code == 130
    assert result.stderr == (
        "interrupted: the record was not produced, and the input from record 2 on was not read: topic latest: invalid record"
        " (a compacted topic rejects records without a key: set one with -k or -K)\n"
    )
