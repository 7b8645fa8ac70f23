"""Every code sample of well-known introductions to Kafka, run as it is printed, and what it promises looked at.

The samples are in `python_samples.py` and `Samples.java`; shell lines stand in the tests. The address differs from what is printed.
On one node replication factor 3 becomes 1 (Kafka's own message says why); on three nodes it is 3.

Runs on barnabas, alone and on three nodes, and on Apache Kafka: a sample that fails on both would prove nothing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apache_kafka
import pytest
from apache_kafka import free_port
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import barnabas
from tests.conform.brokers import BarnabasProcess, await_leaders, broker
from tests.samples import python_samples

pytestmark = [pytest.mark.conform, pytest.mark.timeout(3600)]

HERE = Path(__file__).parent
PATIENCE_SECONDS = 240


class Done(Exception):
    """Leaves a sample's endless loop."""


class Cluster:
    """A cluster's address, and what a test looks at on it.

    Args:
        bootstrap: the address of one node.
        replicas: how many each topic has.
    """

    def __init__(self, bootstrap: str, replicas: int) -> None:
        self.bootstrap = bootstrap
        self.replicas = replicas
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def fresh(self, *topics: str, partitions: int = 1) -> None:
        """The topics, empty, and no groups."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while groups := [each.group_id for each in self.admin.list_consumer_groups().result(PATIENCE_SECONDS).valid]:
            for deleted in self.admin.delete_consumer_groups(groups).values():
                # A member that has said goodbye may be in its group for a moment more.
                if deleted.exception(PATIENCE_SECONDS) is not None:
                    assert time.monotonic() < deadline, deleted.exception()
                    time.sleep(0.05)
        existing = set(self.admin.list_topics(timeout=PATIENCE_SECONDS).topics) & set(topics)
        if existing:
            for deleted in self.admin.delete_topics(sorted(existing)).values():
                deleted.result(PATIENCE_SECONDS)
        while set(self.admin.list_topics(timeout=PATIENCE_SECONDS).topics) & set(topics):
            assert time.monotonic() < deadline
        for created in self.admin.create_topics(
            [NewTopic(topic, partitions, self.replicas) for topic in topics]
        ).values():
            created.result(PATIENCE_SECONDS)
        await_leaders(self.bootstrap, dict.fromkeys(topics, partitions), PATIENCE_SECONDS)

    def run(self, sample: str, **functions: Any) -> dict[str, Any]:
        """Executes Python; a sample's endless loop ends with Done, and its clients are closed."""
        names: dict[str, Any] = dict(functions)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                exec(compile(sample.replace("localhost:9092", self.bootstrap), "sample", "exec"), names)
            except Done:
                pass
            finally:
                for each in ("producer", "consumer"):
                    if hasattr(names.get(each), "close"):
                        names[each].close()
        return names

    def fill(self, topic: str, *values: str) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def read(self, topic: str, isolation: str = "read_committed") -> list[tuple[int, str | None, str]]:
        """(partition, key, value) of every record, partition after partition."""
        return [
            (each.partition(), None if each.key() is None else each.key().decode(), each.value().decode())
            for each in self.messages(topic, isolation)
        ]

    def messages(self, topic: str, isolation: str = "read_committed") -> list[Message]:
        """Every record, partition after partition.

        Transactions that were just ended are waited for: their markers are written after the client was answered, and until then a
        partition ends before them for those who read what is committed.
        """
        settings = {
            "bootstrap.servers": self.bootstrap, "group.id": "looking", "enable.partition.eof": True, "enable.auto.commit": False,
        }  # fmt: skip
        end_reader = Consumer(settings | {"isolation.level": "read_uncommitted"})
        consumer = Consumer(settings | {"isolation.level": isolation})
        found = []
        for partition in sorted(self.admin.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic].partitions):
            _, end = end_reader.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE_SECONDS)
            consumer.assign([TopicPartition(topic, partition, 0)])
            deadline = time.monotonic() + PATIENCE_SECONDS
            while True:
                assert time.monotonic() < deadline
                message = consumer.poll(0.2)
                if message is None:
                    continue
                if message.error():
                    if message.error().name() == "_PARTITION_EOF" and message.offset() >= end:
                        break
                    continue
                found.append(message)
        consumer.close()
        end_reader.close()
        return found

    def committed(self, group: str, topic: str) -> int:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        (position,) = consumer.committed([TopicPartition(topic, 0)], PATIENCE_SECONDS)
        consumer.close()
        return int(position.offset)

    def tool(self, line: str) -> str:
        """A line of the shell, as printed; Kafka's script runs from its jars."""
        script, *arguments = line.replace("\\\n", " ").replace("localhost:9092", self.bootstrap).split()
        done = apache_kafka.run_tool(TOOLS[script], *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


TOOLS = {"kafka-topics.sh": "topics", "kafka-configs.sh": "configs", "kafka-producer-perf-test.sh": "producer-perf",
         "kafka-storage.sh": "storage"}  # fmt: skip


@pytest.fixture(scope="module", params=["barnabas", "three nodes", "apache-kafka"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {"group.initial.rebalance.delay.ms": "0", "log.cleaner.backoff.ms": "100"}
    if request.param == "three nodes":
        with barnabas.Cluster(config=settings) as nodes:
            yield Cluster(nodes.bootstrap_servers.split(",")[0], replicas=3)
    else:
        with broker(request.param, tmp_path_factory.mktemp(request.param), settings) as running:
            yield Cluster(running.bootstrap_servers, replicas=1)


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Cluster], None]:
    if shutil.which("javac") is None:
        pytest.skip("no javac: install a JDK")
    classes = tmp_path_factory.mktemp("classes")
    subprocess.run(
        ["javac", "-cp", apache_kafka.classpath(), "-d", str(classes), str(HERE / "Samples.java")], check=True
    )

    def run(sample: str, cluster: Cluster) -> None:
        path = f"{classes}:{apache_kafka.classpath()}"
        command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", path, "Samples", sample, cluster.bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return run


# --- Python -----------------------------------------------------------------------------------------------------------


def test_keys_choose_partitions(cluster: Cluster) -> None:
    cluster.fresh("orders", partitions=6)
    sample = python_samples.KEYED_AND_KEYLESS_PRODUCER
    for _ in range(3):
        cluster.run(sample.replace("producer.send('orders', value='{\"event\": \"heartbeat\"}')\n", ""))
    records = cluster.read("orders")
    assert len(records) == 6
    for key, item in (("user:42", "monitor"), ("user:99", "keyboard")):
        mine = [(partition, value) for partition, found, value in records if found == key]
        assert len(mine) == 3
        assert len({partition for partition, _ in mine}) == 1
        assert all(item in value for _, value in mine)


def test_a_record_without_a_key(cluster: Cluster) -> None:
    """A serializer for keys meets None here: `str.encode` takes none, so the sample needs one that does."""
    cluster.fresh("orders", partitions=6)
    sample = python_samples.KEYED_AND_KEYLESS_PRODUCER
    with pytest.raises(TypeError):
        cluster.run(sample)
    cluster.fresh("orders", partitions=6)
    cluster.run(sample.replace("key_serializer=str.encode", "key_serializer=lambda key: key and key.encode()"))
    keys = sorted(str(key) for _, key, _ in cluster.read("orders"))
    assert keys == ["None", "user:42", "user:99"]


def test_queue_consumer(cluster: Cluster) -> None:
    cluster.fresh("orders")
    cluster.fill("orders", "1", "2", "3")
    processed: list[bytes] = []

    def process_order(value: bytes) -> None:
        processed.append(value)
        if len(processed) == 3:
            raise Done

    cluster.run(python_samples.QUEUE_CONSUMER, process_order=process_order)
    assert processed == [b"1", b"2", b"3"]


def test_groups_read_independently(cluster: Cluster) -> None:
    """Publish and subscribe: each group gets everything."""
    cluster.fresh("orders")
    cluster.fill("orders", "1", "2", "3")
    for group in ("order-processor", "analytics", "search"):
        processed: list[bytes] = []

        def process_order(value: bytes, processed: list[bytes] = processed) -> None:
            processed.append(value)
            if len(processed) == 3:
                raise Done

        cluster.run(python_samples.QUEUE_CONSUMER.replace("order-processor", group), process_order=process_order)
        assert processed == [b"1", b"2", b"3"]


def test_auto_commit_on_close(cluster: Cluster) -> None:
    """The group has the offset when the consumer leaves properly."""
    cluster.fresh("orders")
    cluster.fill("orders", "1", "2", "3")
    processed: list[bytes] = []

    def process(value: bytes) -> None:
        processed.append(value)
        if len(processed) == 3:
            raise Done

    cluster.run(python_samples.AUTO_COMMIT_CONSUMER, process=process)
    assert processed == [b"1", b"2", b"3"]
    assert cluster.committed("processor", "orders") == 3


def test_manual_commit(cluster: Cluster) -> None:
    """What was processed and not committed comes again: at least once."""
    cluster.fresh("orders")
    # One record a poll: commit() without arguments commits the position, which a larger poll moves past unprocessed records.
    sample = python_samples.MANUAL_COMMIT_CONSUMER.replace("group_id=", "max_poll_records=1, group_id=")
    cluster.fill("orders", "1", "2", "3")
    processed: list[bytes] = []

    def process(value: bytes) -> None:
        processed.append(value)
        if len(processed) in (2, 4):
            raise Done  # this one is processed, and not committed

    cluster.run(sample, process=process)
    assert processed == [b"1", b"2"]
    assert cluster.committed("processor", "orders") == 1
    cluster.run(sample, process=process)
    assert processed == [b"1", b"2", b"2", b"3"]


def test_idempotent_producer(cluster: Cluster) -> None:
    cluster.fresh("orders")
    cluster.run(python_samples.IDEMPOTENT_PRODUCER)
    assert [value for _, _, value in cluster.read("orders")] == [str(number) for number in range(100)]


def test_consume_transform_produce(cluster: Cluster) -> None:
    cluster.fresh("orders", "processed-orders")
    cluster.fill("orders", "1", "2", "3")
    seen = 0

    def transform(value: bytes) -> bytes:
        nonlocal seen
        seen += 1
        return value + b" processed"

    def committed() -> None:
        if seen == 3:
            raise Done

    cluster.run(python_samples.TRANSACTION, transform=transform, committed=committed)
    assert [value for _, _, value in cluster.read("processed-orders")] == ["1 processed", "2 processed", "3 processed"]
    assert cluster.committed("processor", "orders") == 3


def test_a_transaction_that_fails_gives_everything_back(cluster: Cluster) -> None:
    """Output and offset are discarded together, and the next one processes the records again."""
    cluster.fresh("orders", "processed-orders")
    cluster.fill("orders", "1", "2", "3")

    def explode(value: bytes) -> bytes:
        if value == b"3":
            raise Done
        return b"never to be seen"

    cluster.run(python_samples.TRANSACTION.replace("txn-order", "txn-failing-order"), transform=explode)
    outputs: list[bytes] = []

    def transform(value: bytes) -> bytes:
        outputs.append(value)
        return value

    def committed() -> None:
        if len(outputs) == 3:
            raise Done

    cluster.run(
        python_samples.TRANSACTION.replace("txn-order", "txn-failing-order"), transform=transform, committed=committed
    )
    assert [value for _, _, value in cluster.read("processed-orders")] == ["1", "2", "3"]
    assert cluster.committed("processor", "orders") == 3


def test_delivery_reports(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.fresh("clicks", partitions=3)
    cluster.run(python_samples.DELIVERY_REPORTS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(re.fullmatch(r"Message delivered to clicks \[[012]\]", line) for line in lines)
    assert sorted(str(key) for _, key, _ in cluster.read("clicks")) == ["None", "alice"]


# --- Java -------------------------------------------------------------------------------------------------------------


def test_java_clicks(cluster: Cluster, java: Callable[[str, Cluster], None]) -> None:
    cluster.fresh("clicks", partitions=3)
    java("clicks", cluster)
    assert sorted(str(key) for _, key, _ in cluster.read("clicks")) == ["None", "alice"]


def test_java_idempotent(cluster: Cluster, java: Callable[[str, Cluster], None]) -> None:
    cluster.fresh("numbers")
    java("idempotent", cluster)
    assert [value for _, _, value in cluster.read("numbers")] == [str(number) for number in range(1000)]


def test_java_payments(cluster: Cluster, java: Callable[[str, Cluster], None]) -> None:
    cluster.fresh("payments", partitions=3)
    java("payments", cluster)
    records = cluster.read("payments")
    assert len(records) == 5
    assert len({partition for partition, key, _ in records if key == "ann"}) == 1


def test_java_transaction(cluster: Cluster, java: Callable[[str, Cluster], None]) -> None:
    cluster.fresh("topic1", "topic2")
    java("transaction", cluster)
    assert [(key, value) for _, key, value in cluster.read("topic1")] == [(str(i), f"value{i}") for i in range(100)]
    assert cluster.read("topic2") == [(0, "key", "value")]


def test_java_offsets_in_a_transaction(cluster: Cluster, java: Callable[[str, Cluster], None]) -> None:
    cluster.fresh("input-topic", "output-topic")
    cluster.fill("input-topic", "a", "b")
    java("offsets", cluster)
    assert [value for _, _, value in cluster.read("output-topic")] == ["a in attempt 1", "b in attempt 1"]
    uncommitted = [value for _, _, value in cluster.read("output-topic", "read_uncommitted")]
    assert uncommitted == ["a in attempt 0", "b in attempt 0", "a in attempt 1", "b in attempt 1"]
    assert cluster.committed("input-readers", "input-topic") == 2


# --- shell ------------------------------------------------------------------------------------------------------------


def gone(cluster: Cluster, *topics: str) -> None:
    cluster.fresh(*topics)
    for deleted in cluster.admin.delete_topics(list(topics)).values():
        deleted.result(PATIENCE_SECONDS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while set(cluster.admin.list_topics(timeout=PATIENCE_SECONDS).topics) & set(topics):
        assert time.monotonic() < deadline


def test_create_alter_and_describe(cluster: Cluster) -> None:
    gone(cluster, "orders")
    created = cluster.tool(f"""kafka-topics.sh --create \\
        --topic orders \\
        --partitions 6 \\
        --replication-factor {cluster.replicas} \\
        --bootstrap-server localhost:9092""")
    assert "Created topic orders." in created
    # The introductions leave --bootstrap-server out here.
    for setting in ("retention.ms=604800000", "retention.bytes=53687091200"):
        altered = cluster.tool(f"""kafka-configs.sh --alter --entity-type topics \\
            --entity-name orders --add-config {setting} --bootstrap-server localhost:9092""")
        assert "Completed updating config for topic orders." in altered
    described = cluster.tool("kafka-topics.sh --describe --bootstrap-server localhost:9092 --topic orders")
    assert "PartitionCount: 6" in described
    assert "retention.ms=604800000" in described
    assert "retention.bytes=53687091200" in described
    (found,) = re.findall(r"Topic: orders\s+Partition: 0\s+Leader: (\d+)\s+Replicas: (\S+)\s+Isr: (\S+)", described)
    leader, replicas, isr = found[0], found[1].split(","), found[2].split(",")
    assert leader in replicas
    assert len(replicas) == cluster.replicas
    assert sorted(isr) == sorted(replicas)


def test_create_a_compacted_topic(cluster: Cluster) -> None:
    gone(cluster, "latest-user-profiles")
    cluster.tool("""kafka-topics.sh --create \\
        --topic latest-user-profiles \\
        --partitions 6 \\
        --config cleanup.policy=compact \\
        --bootstrap-server localhost:9092""")
    described = cluster.tool(
        "kafka-topics.sh --describe --bootstrap-server localhost:9092 --topic latest-user-profiles"
    )
    assert "cleanup.policy=compact" in described
    assert described.count("Partition: ") == 6


def offsets_keys_values(cluster: Cluster) -> list[tuple[int, str, str]]:
    messages = cluster.messages("latest-user-profiles")
    return [(each.offset(), each.key().decode(), each.value().decode()) for each in messages]


@pytest.mark.parametrize(
    ("first", "other", "newer"),
    [
        (("A", "v1"), ("B", "v2"), ("A", "v3")),
        (
            ("user-1", '{"name":"Alice","city":"Delhi"}'),
            ("user-2", '{"name":"Bob","city":"Mumbai"}'),
            ("user-1", '{"name":"Alice","city":"Pune"}'),
        ),
    ],
    ids=["letters", "users"],
)
def test_before_and_after_compaction(
    cluster: Cluster, first: tuple[str, str], other: tuple[str, str], newer: tuple[str, str]
) -> None:
    """Offsets 0, 1, 2 become 1, 2. Only a closed segment is compacted: a younger record closes that of the three."""
    cluster.fresh("latest-user-profiles")
    cluster.tool("""kafka-configs.sh --alter --entity-type topics --entity-name latest-user-profiles \\
        --add-config cleanup.policy=compact,segment.ms=60000,min.cleanable.dirty.ratio=0.01 \\
        --bootstrap-server localhost:9092""")
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    now_ms = int(time.time() * 1000)
    for key, value in (first, other, newer):
        producer.produce("latest-user-profiles", value, key, partition=0, timestamp=now_ms - 120_000)
    assert producer.flush(PATIENCE_SECONDS) == 0
    producer.produce("latest-user-profiles", "younger", "another key", partition=0, timestamp=now_ms)
    assert producer.flush(PATIENCE_SECONDS) == 0
    deadline = time.monotonic() + PATIENCE_SECONDS
    left = [(1, *other), (2, *newer), (3, "another key", "younger")]
    while (found := offsets_keys_values(cluster)) != left:
        assert found == [(0, *first), *left]
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_producer_perf_test(cluster: Cluster) -> None:
    """A fiftieth of the printed number of records, which is enough to see it work."""
    cluster.fresh("orders", partitions=6)
    printed = cluster.tool("""kafka-producer-perf-test.sh \\
        --topic orders --num-records 20000 \\
        --record-size 1000 --throughput -1 \\
        --producer-props bootstrap.servers=localhost:9092 \\
        acks=1 batch.size=65536 compression.type=snappy \\
        --print-metrics""")
    assert re.search(r"20000 records sent, [\d.]+ records/sec", printed)
    assert "producer-metrics:record-send-total" in printed
    ends = [cluster.admin.list_topics("orders", timeout=PATIENCE_SECONDS).topics["orders"].partitions]
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "looking"})
    assert sum(consumer.get_watermark_offsets(TopicPartition("orders", each), 30)[1] for each in ends[0]) == 20_000
    consumer.close()


# What `config/kraft/server.properties` of Apache Kafka says, with other ports and another folder.
SERVER_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{controller}
listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller}
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={folder}
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


class FromFile(BarnabasProcess):
    """`barnabas start FILE`."""

    def arguments(self) -> list[str]:
        return [str(self.folder / "server.properties")]


@pytest.mark.parametrize("who_formats", ["barnabas", "apache-kafka"])
def test_format_and_start(tmp_path: Path, who_formats: str) -> None:
    """`kafka-storage.sh format --config FILE --cluster-id $(kafka-storage.sh random-uuid)`, `kafka-server-start.sh FILE`."""
    node = FromFile(tmp_path)
    file = tmp_path / "server.properties"
    file.write_text(SERVER_PROPERTIES.format(port=node.port, controller=free_port(), folder=node.data_dir))
    random_uuid = apache_kafka.run_tool("storage", "random-uuid").stdout.strip()
    line = ["format", "--config", str(file), "--cluster-id", random_uuid]
    if who_formats == "barnabas":
        command = [sys.executable, "-m", "barnabas.main", "storage", *line]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    else:
        done = apache_kafka.run_tool("storage", *line)
    assert done.returncode == 0, done.stdout + done.stderr
    with node:
        cluster = Cluster(node.bootstrap_servers, replicas=1)
        assert cluster.admin.describe_cluster().result(PATIENCE_SECONDS).cluster_id == random_uuid
        cluster.fresh("orders")
        cluster.fill("orders", "1")
        assert cluster.read("orders") == [(0, None, "1")]
