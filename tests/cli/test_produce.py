"""`produce`: topics that the broker does not create, Ctrl-C after a record that was not produced, and how many records were."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterator
from unittest import mock

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.failure import Failure
from barnabas.cli.lines import Lines
from barnabas.cli.output import TableOutput
from barnabas.cli.producer_run import ProducerRun
from barnabas.cli.record_reader import Common, Given
from barnabas.cli.session import Session
from barnabas.client.admin import LATEST, Admin, TopicPartition, result
from barnabas.client.partition_records import records_between
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


def records(admin: Admin, topic: str, partitions: int) -> dict[int, list[tuple[object, ...]]]:
    """Return what lies in each partition, without the times."""
    wanted = [TopicPartition(topic, number) for number in range(partitions)]
    ends = admin.list_offsets(dict.fromkeys(wanted, LATEST))
    return {
        each.partition: [
            (record.offset, record.key, record.value, record.headers)
            for record in records_between(admin.cluster, each, 0, result(ends[each]).offset)
        ]
        for each in wanted
    }


LIBRARY_CHOOSES = "-X partitioner=murmur2_random"
LINES = [b"", b":", b"k:", b":v", b"no key", b"\x00\xff:\xfe\x00", "ü:ß".encode()] + [
    b"%d:%s" % (number % 7, b"x" * number) for number in range(50)
]


@pytest.mark.parametrize(
    ("options", "partitions"),
    [
        ("", 1),
        ("-k customer-42 -H a=1 -H b", 5),
        ("-K: -D ;", 1),
        ("-K: -D ';' -Z", 1),
        ("-p 3 -z gzip", 5),
        ("-z snappy", 1),
        ("-z lz4", 1),
        ("-z zstd -K:", 1),
        ("-X queue.buffering.max.messages=7", 1),
    ],
)
def test_the_same_is_produced_and_reported_whoever_chooses_the_partition(
    broker: barnabas.Broker, options: str, partitions: int
) -> None:
    given = (b";" if "-D" in options else b"\n").join(LINES)
    found = []
    with Admin(broker.bootstrap_servers) as admin:
        for extra in ("", LIBRARY_CHOOSES):
            topic = f"by-{'library' if extra else 'command'}-{options.encode().hex()}"
            admin.create_topics([NewTopic(topic, partitions, 1)])
            ran = run(broker, f"barnabas produce {topic} -o json {options} {extra}", io.BytesIO(given))
            assert ran.exit_code == 0, ran.output
            report = json.loads(ran.stdout)
            assert report["records"] == len(LINES)
            counts = {each["partition"]: each["records"] for each in report["partitions"]}
            found.append((counts, report["value_bytes"], records(admin, topic, partitions)))
    assert found[0] == found[1]
    assert sum(map(len, found[0][2].values())) == len(LINES)


def test_what_a_second_ctrl_c_leaves_behind_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    session = Session("127.0.0.1:1", {}, None, TableOutput())
    producing = ProducerRun(session, "orders", (), {"partitioner": "murmur2_random"}, None, [0, 0])
    lines = Lines.of(b"\n", None)
    producing.send_lines(lines.batches(io.BytesIO(b"a\nb\nc\n")), lines, Common())
    producing.report(is_interrupted=True)
    said = capsys.readouterr()
    assert said.err.endswith("interrupted: 3 records were sent but not acknowledged, so the log may have them\n")
    assert said.out == "produced 0 records\n"
