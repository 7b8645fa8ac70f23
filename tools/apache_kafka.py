"""Apache Kafka itself, from its published jars: the judge that conformance tests and benchmarks compare with.

    python tools/apache_kafka.py install            fetch the jars with Maven (once; about 60 MB)
    python tools/apache_kafka.py tool topics ...    run an official tool against any address
    python tools/apache_kafka.py start DIR [PORT]   one node in the foreground, its data in DIR

The jars live in `$BARNABAS_KAFKA_HOME`, or `~/.cache/barnabas/kafka-VERSION`. The version is the newest whose server
and tools are all published. As a module: `with ApacheKafka(folder) as kafka:` gives `kafka.bootstrap_servers`;
`kafka.kill()`, `kafka.start()` and `kafka.stop()` act on the one node. Needs Java 17 and Maven; nothing outside the
standard library.
"""

from __future__ import annotations

import base64
import fcntl
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

DEFAULT_VERSION = "4.3.1"
VERSION = DEFAULT_VERSION
GROUP = "org.apache.kafka"
FETCHES = 3
"""A download that breaks off is begun again so often; what has come stays in Maven's repository."""
READY_SECONDS = 240
"""A node is there within seconds; after a kill, on a busy machine, it may take more than a minute."""
STOP_SECONDS = 120
ARTIFACTS = ("kafka_2.13", "kafka-tools", "kafka-clients", "kafka-server", "kafka-storage")
# As kafka-run-class.sh starts a server.
JVM_FLAGS = ("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")
LOG4J = """status = error
appender.out.type = Console
appender.out.name = out
appender.out.target = {target}
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
"""
TOOLS = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf": "org.apache.kafka.tools.ConsumerPerformance",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "producer-perf": "org.apache.kafka.tools.ProducerPerformance",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "storage": "kafka.tools.StorageTool",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
}


class KafkaUnavailable(Exception):
    """The jars are not here, or a node did not start; the message says what to do."""


def home() -> Path:
    """Where the jars live, whether or not they are there."""
    given = os.environ.get("BARNABAS_KAFKA_HOME")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given and VERSION == DEFAULT_VERSION else cache / "barnabas" / f"kafka-{VERSION}"


def use(version: str) -> None:
    """Take this version from now on in this process, fetching its jars at first use; those that run stay as they are."""
    global VERSION
    VERSION = version
    install()


def is_installed() -> bool:
    return (home() / "complete").exists()


def classpath() -> str:
    if not is_installed():
        raise KafkaUnavailable("no Apache Kafka here yet: run `make conform`, or python tools/apache_kafka.py install")
    return f"{home() / 'libs'}/*"


@contextmanager
def in_turn(name: str) -> Iterator[None]:
    """Hold the lock of that name, which processes that fetch or build the same thing side by side take in turn."""
    folder = home().parent
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def maven(folder: Path, dependencies: list[tuple[str, str, str]], *goals: str) -> str:
    """Run Maven goals on a pom that lists `dependencies` (group, artifact, version); returns what it printed.

    An artifact may have a classifier: `kafka-streams:test`.
    """
    listed = "".join(
        f"<dependency><groupId>{g}</groupId><artifactId>{a.partition(':')[0]}</artifactId><version>{v}</version>"
        f"<classifier>{a.partition(':')[2]}</classifier></dependency>"
        for g, a, v in dependencies
    )
    pom = (
        "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId>"
        f"<version>1</version><dependencies>{listed}</dependencies></project>"
    )
    (folder / "pom.xml").write_text(pom)
    executable = shutil.which("mvn")
    if executable is None:
        raise KafkaUnavailable(
            "Maven is needed to fetch Apache Kafka's jars (Debian and Ubuntu: apt-get install maven)"
        )
    with in_turn("maven"):  # its repository takes one writer
        for _ in range(FETCHES):
            result = subprocess.run([executable, "-B", *goals], cwd=folder, capture_output=True, text=True, check=False)
            if not result.returncode:
                return result.stdout
    errors = [line for line in result.stdout.splitlines() if "ERROR" in line]
    raise KafkaUnavailable("Maven failed: " + "\n".join(errors)[:2000])


def install() -> Path:
    """Fetch the jars unless they are here; a half-finished fetch is begun again."""
    target = home()
    if is_installed():
        return target
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        kafka = [(GROUP, artifact, VERSION) for artifact in ARTIFACTS]
        listed = maven(Path(scratch), kafka, "dependency:list", "-DincludeScope=runtime")
        found = re.search(r"log4j-core:jar:([\d.]+):", listed)
        log4j = found[1] if found else "2.25.1"
        bindings = [("org.apache.logging.log4j", name, log4j) for name in ("log4j-slf4j-impl", "log4j-1.2-api")]
        copy = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={target / 'libs'}")
        maven(Path(scratch), kafka + bindings, *copy)
    (target / "server-log4j2.properties").write_text(LOG4J.format(target="SYSTEM_OUT", level="INFO"))
    (target / "tools-log4j2.properties").write_text(LOG4J.format(target="SYSTEM_ERR", level="WARN"))
    (target / "complete").write_text(VERSION + "\n")
    return target


def library(name: str, *artifacts: str, version: str = VERSION) -> str:
    """The class path of more of Kafka's artifacts with all that they need, fetched at first use into a folder of that name."""
    target = home() / name
    with in_turn(name):
        if not (target / "complete").exists():
            shutil.rmtree(target, ignore_errors=True)
            with tempfile.TemporaryDirectory() as scratch:
                wanted = [(GROUP, artifact, version) for artifact in artifacts]
                copy = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={target}")
                maven(Path(scratch), [*wanted, ("org.slf4j", "slf4j-simple", "1.7.36")], *copy)
            (target / "complete").write_text(version + "\n")
    return f"{target}/*"


def java_command(main_class: str, *args: str, heap: str = "256m", log4j: str = "tools-log4j2.properties") -> list[str]:
    configured = f"-Dlog4j2.configurationFile={home() / log4j}"
    return ["java", f"-Xmx{heap}", *JVM_FLAGS, configured, "-cp", classpath(), main_class, *args]


def class_of(tool: str) -> str:
    """The tool's class; tools move between packages from release to release, so the jars have the last word."""
    wanted = TOOLS[tool]
    simple = wanted.rsplit(".", 1)[-1]
    found = []
    for jar in sorted((home() / "libs").glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as archive:
            found += [n[:-6].replace("/", ".") for n in archive.namelist() if n.endswith(f"/{simple}.class")]
    return wanted if wanted in found or not found else found[0]


def tool_command(tool: str, *args: str) -> list[str]:
    heap = "512m" if "perf" in tool or "verifiable" in tool else "256m"
    return java_command(class_of(tool), *args, heap=heap)


def run_tool(tool: str, *args: str, stdin: str | None = None, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run one official tool to its end; the caller looks at returncode, stdout and stderr."""
    return subprocess.run(
        tool_command(tool, *args), input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )


def free_port() -> int:
    """A port of the loopback address that the system gives to nobody else while this process lives.

    A socket stays bound to it, and does not listen; so a server that reuses addresses, as brokers do, can take the port.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _held.append(holder)
    return int(holder.getsockname()[1])


_held: list[socket.socket] = []


def answers(port: int) -> bool:
    """Whether the broker on this port lists itself in its metadata (Metadata version 1, no topics)."""
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.settimeout(5)
            body = struct.pack(">hhihi", 3, 1, 1, -1, 0)
            connection.sendall(struct.pack(">i", len(body)) + body)
            stream = connection.makefile("rb")
            (size,) = struct.unpack(">i", stream.read(4))
            return bool(struct.unpack(">i", stream.read(size)[4:8])[0] > 0)
    except (OSError, struct.error):
        return False


class ApacheKafka:
    """One combined broker and controller node in a folder of its own, on a free port unless one is given."""

    format_options: tuple[str, ...] = ()
    jvm_options: tuple[str, ...] = ()

    def __init__(
        self, folder: Path | str, port: int = 0, settings: dict[str, str] | None = None, heap: str = "1g"
    ) -> None:
        self.folder = Path(folder)
        self.port = port or free_port()
        self.controller_port = free_port()
        self.heap = heap
        self.data_dir = self.folder / "data"
        self.settings = settings or {}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def properties(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.settings,
        }

    def format(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self.properties().items()))
        result = run_tool("storage", "format", "-t", self.cluster_id(), "-c", str(config), *self.format_options)
        if result.returncode:
            raise KafkaUnavailable(f"format failed: {result.stdout}{result.stderr}")

    def cluster_id(self) -> str:
        return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")

    def start(self, timeout: float = READY_SECONDS) -> None:
        if not (self.data_dir / "meta.properties").exists():
            self.format()
        config = str(self.folder / "server.properties")
        command = java_command("kafka.Kafka", config, heap=self.heap, log4j="server-log4j2.properties")
        command[1:1] = self.jvm_options
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
        deadline = time.monotonic() + timeout
        while not answers(self.port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise KafkaUnavailable(f"Apache Kafka did not come up; see {self.folder / 'server.log'}")
            time.sleep(0.02)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self) -> ApacheKafka:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["install"]:
        target = install()
        print(f"Apache Kafka {VERSION} in {target}")
        return 0
    if arguments[:1] == ["tool"] and len(arguments) > 1 and arguments[1] in TOOLS:
        command = tool_command(arguments[1], *arguments[2:])
        os.execvp(command[0], command)
    if arguments[:1] == ["start"] and len(arguments) > 1:
        kafka = ApacheKafka(arguments[1], int(arguments[2]) if len(arguments) > 2 else 0)
        kafka.start()
        print(f"Apache Kafka ready on {kafka.bootstrap_servers}", flush=True)
        assert kafka.process is not None
        try:
            return kafka.process.wait()
        except KeyboardInterrupt:
            kafka.stop()
            return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KafkaUnavailable as error:
        sys.exit(str(error))
