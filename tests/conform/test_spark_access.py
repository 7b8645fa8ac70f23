"""Source and sink of Spark on Apache Kafka with TLS, logins and an authorizer: the ACLs of the pages suffice, and each is needed.

The commands in `docs/spark.md` and `docs/spark-sink.md` are read from the pages, and the ACLs that they name are all that the users have.
One Spark application does everything that needs Spark, with all of Spark's logging on; what it leaves behind has no secret. Whether each
ACL is needed is asked through the parts that Spark calls, without Spark.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import LOG4J
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from barnabas.protocol.errors import KafkaError
from barnabas.security.dev_certificates import DevelopmentAuthority, IssuedCertificate
from barnabas.spark.named_topics import partition_count
from barnabas.spark.sink.options import parse_stream_options as parse_sink
from barnabas.spark.sink.orphans import open_sinks
from barnabas.spark.sink.protocol import SinkDriver
from barnabas.spark.sink.sink_batch import SinkBatch
from barnabas.spark.sink.task_producers import TaskProducers, open_cluster
from barnabas.spark.sink.task_writer import write_task
from barnabas.spark.source.fetcher import RangeFetcher
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.options import parse_batch_options as parse_source
from barnabas.spark.source.ranges import OffsetRange
from tests.conform.authorized_kafka import AuthorizedKafka
from tests.documents import blocks
from tests.spark.session import SHORT_LIVED

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(1800)]

DOCS = Path(__file__).parents[2] / "docs"
MARKER = "m4rker-of-a-s3cret"
USERS = {name: f"{name}-{MARKER}" for name in ("reader", "writer", "exact", "beginner", "doctor", "stranger")}
RECORDS = 25
SHELL = """logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = INFO
"""
"""Without it Spark takes the driver for a shell, and logs warnings only."""
SECONDS = 60

Grant = tuple[str, ResourceType, str, ResourcePatternType, AclOperation]
"""User, kind and name of the resource, whether the name is a prefix, and the operation."""


class Access:
    """A cluster, its administrator, and the options of its users."""

    def __init__(self, kafka: AuthorizedKafka, authority: DevelopmentAuthority, certificate: IssuedCertificate) -> None:
        self.kafka = kafka
        self.admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        self.trust = {
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.certificates": authority.certificate,
        }
        self.certificate = {
            "kafka.bootstrap.servers": kafka.ssl_servers,
            "kafka.security.protocol": "SSL",
            **self.trust,
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.keystore.key": certificate.key,
            "kafka.ssl.keystore.certificate.chain": certificate.certificate,
        }

    def options(self, user: str, mechanism: str = "SCRAM-SHA-512", password: str | None = None) -> dict[str, str]:
        module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
        return {
            "kafka.bootstrap.servers": self.kafka.sasl_servers,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": mechanism,
            "kafka.sasl.jaas.config": f"org.apache.kafka.common.security.{module}LoginModule required"
            f' username="{user}" password="{password or USERS[user]}";',
            **self.trust,
        }

    def grant(self, *grants: Grant) -> None:
        bindings = [
            AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
            for user, kind, name, pattern, operation in grants
        ]
        for created in self.admin.create_acls(bindings).values():
            created.result(SECONDS)

    def revoke(self, grant: Grant) -> None:
        user, kind, name, pattern, operation = grant
        wanted = AclBindingFilter(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        (deleted,) = self.admin.delete_acls([wanted]).values()
        assert len(deleted.result(SECONDS)) == 1

    def create(self, name: str, replicas: int = 1, **config: str) -> None:
        (created,) = self.admin.create_topics([NewTopic(name, 1, replicas, config=config)]).values()
        created.result(SECONDS)

    def committed(self, topic: str) -> list[bytes]:
        """Return the committed values of a topic."""
        settings = {
            "bootstrap.servers": self.kafka.bootstrap_servers,
            "group.id": "judge",
            "enable.partition.eof": True,
        }
        consumer = Consumer(settings | {"isolation.level": "read_committed", "enable.auto.commit": False})
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            found: list[bytes] = []
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline:
                message = consumer.poll(SECONDS)
                assert message is not None, "the broker answers"
                if message.error() is not None:
                    return found
                found.append(message.value() or b"")
            raise AssertionError(f"no end after {len(found)} records")
        finally:
            consumer.close()


def commands(page: str, tool: str) -> list[list[str]]:
    """Return the arguments of a tool's commands in a page."""
    text = (DOCS / page).read_text()
    return [shlex.split(each)[1:] for block in blocks(page, text) for each in block.commands if each.split()[0] == tool]


def grants(page: str) -> list[Grant]:
    """Return the ACLs that a page's commands make."""
    found: list[Grant] = []
    for arguments in commands(page, "kafka-acls"):
        assert "--add" in arguments
        pairs = list(pairwise(arguments))
        given = dict(pairs)
        user = given["--allow-principal"].removeprefix("User:")
        pattern = ResourcePatternType[given.get("--resource-pattern-type", "literal").upper()]
        for option in ("--topic", "--group", "--transactional-id"):
            if option in given:
                kind = ResourceType[option[2:].upper().replace("-", "_")]
                operations = [value for name, value in pairs if name == "--operation"]
                found += [(user, kind, given[option], pattern, AclOperation[each.upper()]) for each in operations]
    return found


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    folder = tmp_path_factory.mktemp("secured")
    authority = DevelopmentAuthority.create(time.time_ns() // 1_000_000)
    with AuthorizedKafka(folder, authority, USERS) as kafka:
        found = Access(kafka, authority, authority.issue("CN=reader"))
        for topic in ("orders", "orders.clean"):
            found.create(topic)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(RECORDS):
            producer.produce("orders", f"record {number}")
        assert producer.flush(SECONDS) == 0
        found.grant(*grants("spark.md"), *grants("spark-sink.md"))
        certified = ("CN=reader", ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, AclOperation.READ)
        # All that a query that writes exactly once needs, but no topic of decisions, and no right to make one.
        exact = [each for each in grants("spark-sink.md") if each[0] == "exact" and each[2] != "__barnabas_sink"]
        found.grant(certified, *(("beginner", *each[1:]) for each in exact))
        yield found


class Ran:
    """What the Spark application left."""

    def __init__(self, folder: Path, output: str) -> None:
        self.folder = folder
        self.output = output
        self.results: dict[str, Any] = json.loads((folder / "results.json").read_text())


@pytest.fixture(scope="module")
def before(access: Access) -> str:
    """The error of the first query of a cluster whose users may not create the topic of decisions."""
    error = until(
        lambda: write(access, "beginner", 0), lambda error: error is not None and "__barnabas_sink" in error.message
    )
    assert error is not None
    return error.message


@pytest.fixture(scope="module")
def decided(access: Access, before: str) -> None:
    """The topic of decisions, as the page's command makes it, on the one broker that there is."""
    (arguments,) = commands("spark-sink.md", "kafka-topics")
    assert "--create" in arguments
    given = list(pairwise(arguments))
    config = dict(value.split("=") for name, value in given if name == "--config")
    assert int(dict(given)["--replication-factor"]) == 3
    access.create(dict(given)["--topic"], **{**config, "min.insync.replicas": "1"})


@pytest.fixture(scope="module")
def ran(access: Access, decided: None, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("application")
    lost = {name: value for name, value in access.options("reader").items() if not name.startswith("kafka.ssl.")}
    users = {
        **{name: access.options(name) for name in ("reader", "writer", "exact", "stranger")},
        "plain": access.options("reader", "PLAIN"),
        "certificate": access.certificate,
        "beginner": {**access.options("beginner"), "transactionalIdPrefix": "barnabas-sink"},
        "forgetful": access.options("reader", password=f"wrong-{MARKER}"),
        "lost": {**lost, "kafka.ssl.truststore.location": "/no/such/file.pem", "kafka.ssl.truststore.type": "PEM"},
    }
    given = tmp_path_factory.mktemp("given") / "options.json"
    given.write_text(json.dumps({"users": users}))
    (given.parent / "log4j2.properties").write_text(LOG4J.format(target="SYSTEM_ERR", level="INFO") + SHELL)
    option = f"-Dlog4j2.configurationFile={given.parent}/log4j2.properties"
    logged = {"SPARK_SUBMIT_OPTS": f"{SHORT_LIVED['SPARK_SUBMIT_OPTS']} {option}"}
    program = Path(__file__).with_name("spark_access_application.py")
    ended = subprocess.run(
        [sys.executable, str(program), str(folder), str(given)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1500,
        check=False,
        env={**os.environ, **logged, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert ended.returncode == 0, ended.stdout[-5000:]
    return Ran(folder, ended.stdout)


def test_spark_reads_and_writes_with_the_rights_of_the_pages(access: Access, ran: Ran) -> None:
    results = ran.results
    for name in ("read", "read by PLAIN", "read by certificate"):
        assert results[name] == RECORDS
    for name in ("exactly once", "at least once"):
        assert isinstance(results[name], list), results[name]
        assert sum(each["rows"] for each in results[name]) == RECORDS
    assert results["a batch, exactly once"] == results["a batch, at least once"] == "written"
    assert len(access.committed("orders.clean")) >= 2 * RECORDS + 2


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (
            "read without a right",
            "this user needs Read on topic orders: an administrator allows it with `kafka-acls --add",
        ),
        (
            "stream without a right",
            "this user needs Read on topic orders: an administrator allows it with `kafka-acls --add",
        ),
        ("write without a right", "this user needs Write on topic orders.clean: an administrator allows it with"),
        (
            "exactly once, without a right to the decisions",
            "and this user may not create it: an administrator does with",
        ),
        ("wrong password", "Authentication failed"),
        ("no such file", "kafka.ssl.truststore.location: cannot read /no/such/file.pem"),
    ],
)
def test_what_fails_says_why_in_one_line(ran: Ran, step: str, sentence: str) -> None:
    (line,) = [each for each in ran.results[step].splitlines() if sentence in each]
    assert "Traceback" not in ran.results[step]
    assert line.count(sentence) == 1


def test_no_secret_is_left_behind(access: Access, ran: Ran) -> None:
    key = access.certificate["kafka.ssl.keystore.key"].splitlines()[1]
    secrets = [text.encode() for text in (MARKER, key)]
    left = [path for path in ran.folder.rglob("*") if path.is_file()]
    assert {"events", "checkpoints"} <= {path.relative_to(ran.folder).parts[0] for path in left}
    assert "== Analyzed Logical Plan ==" in ran.output
    assert '"sources" :' in ran.output or '"sources":' in ran.output
    assert " INFO " in ran.output, "Spark's own log is among it"
    found = [path for path in left if any(secret in path.read_bytes() for secret in secrets)]
    assert not found
    assert not [line for line in ran.output.splitlines() if any(secret.decode() in line for secret in secrets)]


def test_who_may_not_create_the_topic_of_decisions_learns_how_an_administrator_does(before: str) -> None:
    assert "\n" not in before
    (command,) = commands("spark-sink.md", "kafka-topics")
    shown = re.search(r"`kafka-topics (--create [^`]+)`", before)
    assert shown is not None, before
    # The page's is for three brokers.
    theirs = shown[1].replace("--replication-factor 1", "--replication-factor 3")
    theirs = theirs.replace("min.insync.replicas=1", "min.insync.replicas=2")
    assert shlex.split(theirs) == [each for each in command if each != "$ADMIN"]
    assert "--operation Read --operation Write --topic __barnabas_sink" in before


def read(access: Access, user: str) -> None:
    """Read a topic as source of a stream with a group does."""
    options = parse_source({**access.options(user, "PLAIN"), "subscribe": "orders"}, 0)
    reader = OffsetReader(options)
    try:
        partitions = reader.partitions()
        begin, end, leaders = reader.start(partitions), reader.latest(partitions), reader.leaders(partitions)
        for at in partitions:
            assert sum(r.num_rows for r in RangeFetcher(options, OffsetRange(*at, begin[at], end[at]), leaders[at]))
        reader.commit("orders-to-table", end)
        reader.committed_notes("orders-to-table", partitions)
    finally:
        reader.close()


def write(access: Access, user: str, number: int, delivery: str = "exactly-once") -> None:
    """Write a batch as a stream does."""
    import pyarrow as pa

    from barnabas.spark.sink.decision_topic import create_decision_topic

    options = parse_sink({**access.options(user, "PLAIN"), "topic": "orders.clean", "delivery": delivery})
    batch = None
    with open_cluster(options) as cluster:
        partition_count(cluster, "orders.clean", 10_000)
        if delivery == "exactly-once":
            create_decision_topic(cluster, 10_000)
            batch = SinkBatch(options.sink_name(user), user, "", number)
        prepared = write_task(TaskProducers(), options, batch, 0, [pa.record_batch({"value": ["by hand"]})])
        if batch is not None:
            SinkDriver(cluster, batch, 10_000, topic="orders.clean").commit([prepared])


def orphans(access: Access) -> list[Any]:
    options = parse_sink({**access.options("doctor", "PLAIN"), "topic": "orders.clean"})
    with open_cluster(options) as cluster:
        return open_sinks(cluster, time.time_ns() // 1_000_000)


def needed(access: Access, mine: list[Grant], work: Callable[[], object]) -> None:
    """Check that work succeeds with these rights, and fails without each one of them."""
    until(work, lambda error: error is None)
    for grant in mine:
        access.revoke(grant)
        error = until(work, lambda error: error is not None)
        assert error is not None, f"the page has an ACL that is not needed: {grant}"
        assert "AUTHORIZATION" in error.code.name, error
        assert "an administrator" in error.message
        access.grant(grant)
        until(work, lambda error: error is None)


def until(work: Callable[[], object], is_right: Callable[[KafkaError | None], bool]) -> KafkaError | None:
    """Do work until it ends as it should, for as long as a broker may not have learnt of an ACL; return its last error."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            work()
            found = None
        except KafkaError as error:
            found = error
        if is_right(found):
            return found
        assert time.monotonic() < deadline, found


def test_each_right_of_the_source_is_needed(access: Access) -> None:
    mine = [each for each in grants("spark.md") if each[0] == "reader"]
    assert len(mine) == 2
    needed(access, mine, lambda: read(access, "reader"))


def test_each_right_of_the_sink_at_least_once_is_needed(access: Access) -> None:
    mine = [each for each in grants("spark-sink.md") if each[0] == "writer"]
    assert len(mine) == 1
    needed(access, mine, lambda: write(access, "writer", 0, "at-least-once"))


def test_each_right_of_the_sink_exactly_once_is_needed(access: Access, decided: None) -> None:
    mine = [each for each in grants("spark-sink.md") if each[0] == "exact"]
    assert len(mine) == 4
    numbers = iter(range(1_000_000))
    needed(access, mine, lambda: write(access, "exact", next(numbers)))


def test_each_right_of_orphans_shows_more(access: Access, decided: None) -> None:
    import pyarrow as pa

    options = parse_sink({**access.options("exact"), "topic": "orders.clean"})
    batch = SinkBatch(options.sink_name("dead"), "dead", "", 0)
    write_task(TaskProducers(), options, batch, 0, [pa.record_batch({"value": ["never committed"]})])
    mine = [each for each in grants("spark-sink.md") if each[0] == "doctor"]
    assert len(mine) == 3
    names, _, topics = mine
    assert [(each.name, each.topics) for each in orphans(access)] == [(batch.name, ("orders.clean",))]
    for grant, shown in ((topics, [(batch.name, ())]), (names, [])):
        access.revoke(grant)
        deadline = time.monotonic() + SECONDS
        while [(each.name, each.topics) for each in orphans(access)] != shown:
            assert time.monotonic() < deadline, orphans(access)
    # What had the rights to write it has those to end it.
    with open_cluster(options) as cluster:
        assert SinkDriver(cluster, batch, 10_000).settle() == (0, 1)
