"""Apache Kafka's broker and Java client read our batches in every codec, and we read theirs."""

from collections.abc import Iterator

import pytest
from apache_kafka import ApacheKafka, run_tool

from barnabas.client.admin import Admin, NewTopic
from barnabas.protocol import messages
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.record import Record, check_records
from barnabas.records.record_batch import iter_batches
from tests.conform.brokers import await_leaders

pytestmark = [pytest.mark.conform, pytest.mark.slow]

VALUES = [f"{index} " + "a line that compresses well " * 20 for index in range(300)]
"""Together more than one 64 KiB block of lz4 and several 32 KiB blocks of snappy."""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ApacheKafka(tmp_path_factory.mktemp("kafka")) as running:
        with Admin(running.bootstrap_servers) as admin:
            for codec in Compression:
                topics = [f"{side}-{codec.codec_name}" for side in ("ours", "theirs")]
                # Records of 1970 must not fall to the first look at retention, half a minute after the start.
                admin.create_topics([NewTopic(topic, 1, 1, {"retention.ms": "-1"}) for topic in topics])
                await_leaders(running.bootstrap_servers, dict.fromkeys(topics, 1))
        yield running.bootstrap_servers


def test_java_reads_ours(kafka: str) -> None:
    request_class = messages.ProduceRequest
    with Admin(kafka) as admin:
        for codec in Compression:
            records = [(1000 + index, b"k", value.encode(), [("h", None)]) for index, value in enumerate(VALUES)]
            topic = f"ours-{codec.codec_name}"
            data = request_class.PartitionProduceData(index=0, records=build_batch(records, compression=codec))
            request = request_class(
                acks=-1,
                timeout_ms=10_000,
                topic_data=[request_class.TopicProduceData(name=topic, partition_data=[data])],
            )
            connection = admin.cluster.connection(admin.cluster.leader(topic, 0))
            (answer,) = connection.request(request, highest=9).responses[0].partition_responses
            assert (answer.error_code, answer.base_offset) == (0, 0), codec
    total = len(Compression) * len(VALUES)
    read = run_tool(
        "console-consumer", "--bootstrap-server", kafka, "--include", "ours-.*", "--from-beginning",
        "--max-messages", str(total), "--timeout-ms", "240000",
    )  # fmt: skip
    assert sorted(read.stdout.splitlines()) == sorted(VALUES * len(Compression)), read.stderr


@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.codec_name)
def test_we_read_javas(kafka: str, codec: Compression) -> None:
    topic = f"theirs-{codec.codec_name}"
    run_tool(
        "console-producer", "--bootstrap-server", kafka, "--topic", topic, "--compression-codec", codec.codec_name,
        "--batch-size", "1000000", "--reader-property", "parse.headers=true",
        stdin="".join(f"h:x\t{value}\n" for value in VALUES),
    )  # fmt: skip
    found: list[Record] = []
    with Admin(kafka) as admin:
        connection = admin.cluster.connection(admin.cluster.leader(topic, 0))
        request_class = messages.FetchRequest
        while len(found) < len(VALUES):
            partition = request_class.FetchPartition(partition=0, fetch_offset=len(found), partition_max_bytes=1 << 20)
            request = request_class(
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=1 << 20,
                topics=[request_class.FetchTopic(topic=topic, partitions=[partition])],
            )
            records = connection.request(request, highest=12).responses[0].partitions[0].records
            assert len(records), f"only {len(found)} records arrived"
            for pos, header in iter_batches(records):
                assert header.compression is codec
                found += check_records(records, pos)
    assert [record.value for record in found] == [value.encode() for value in VALUES]
    assert {tuple(record.headers) for record in found} == {(("h", b"x"),)}
