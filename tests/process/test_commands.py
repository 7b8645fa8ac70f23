"""`barnabas start` and `barnabas storage` as processes: what they print, when they end, and with what code."""

from __future__ import annotations

import json
import re
import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest
from apache_kafka import free_port
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.process import commands
from tests.process.process import ENVIRONMENT, Node, command, run

PATIENCE_SECONDS = 60

pytestmark = pytest.mark.slow


def produce(node: Node, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap_servers, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_SECONDS) == 0


def read_all(node: Node, topic: str, count: int) -> list[str]:
    consumer = Consumer(
        {"bootstrap.servers": node.bootstrap_servers, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    while len(values) < count:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        assert message.error() is None
        values.append(message.value().decode())
    consumer.close()
    return values


def test_start_serve_stop_and_start_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Node(data) as node:
        produce(node, "orders", ["one", "two"])
        assert node.signal(signal.SIGTERM) == 0
        said = node.log_path.read_text()
        assert re.search(rf" barnabas \S+ starts node 1 of cluster \S+ in {re.escape(str(data))}\n", said)
        assert "The directory was empty and is formatted now" in said
        assert "Stopping: SIGTERM" in said
        assert re.search(r"Stopped in \d+\.\d s\n", said)
    assert (data / ".kafka_cleanshutdown").exists()
    with Node(data) as node:
        assert not (data / ".kafka_cleanshutdown").exists()
        produce(node, "orders", ["three"])
        assert read_all(node, "orders", 3) == ["one", "two", "three"]
        assert node.signal(signal.SIGINT) == 0
        assert re.search(r"The last run stopped cleanly: 1 partition, nothing to recover", node.log_path.read_text())


def test_a_killed_node_comes_back_with_what_it_acknowledged(tmp_path: Path) -> None:
    data, sent = tmp_path / "data", []
    for number in range(3):
        with Node(data) as node:
            sent.append(f"before kill {number}")
            produce(node, "orders", [sent[-1]])
            assert node.signal(signal.SIGKILL) == -signal.SIGKILL
    with Node(data) as node:
        assert read_all(node, "orders", 3) == sent
        said = node.log_path.read_text()
        assert "The last run was killed or failed: 1 partition to recover" in said
        assert re.search(r"Recovered 1 partition in \d+\.\d s: 1 segment and \d+ B read\n", said)


def test_a_signal_right_after_ready_is_not_lost(tmp_path: Path) -> None:
    for number in range(3):
        with Node(tmp_path / str(number)) as node:
            assert node.signal(signal.SIGTERM) == 0


def test_a_signal_that_arrives_twice_is_one_signal(tmp_path: Path) -> None:
    """`timeout` signals the process and its group, so that a clean stop may not end at the second one."""
    with Node(tmp_path / "data") as node:
        node.process.send_signal(signal.SIGTERM)
        while "Stopping" not in node.log_path.read_text():
            pass
        node.process.send_signal(signal.SIGTERM)
        assert node.process.wait(PATIENCE_SECONDS) == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as free:
            free.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_the_tools_accept_the_address_that_is_printed(tmp_path: Path) -> None:
    with Node(tmp_path / "data", listen="[::1]:0") as node:
        assert node.host == "[::1]"
        made = run("topic", "create", "orders", "-b", node.bootstrap_servers)
        assert (made.returncode, made.stderr) == (0, "")
        produce(node, "orders", ["one"])
        assert node.signal(signal.SIGTERM) == 0
        assert "serves" not in node.log_path.read_text()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--set", "nonsense"], "--set nonsense: must be KEY=VALUE"),
        (["--listen", "9092"], "--listen 9092: must be HOST:PORT or NAME://HOST:PORT, as in 127.0.0.1:9092"),
        (["--set", "num.partition=2"], "there is no setting num.partition; did you mean num.partitions?"),
        (["a", "--config", "b"], "name one properties file: --config FILE, or FILE alone"),
        (["--data-dr", "x"], "no such option: --data-dr; did you mean --data-dir?"),
        (["--log-level", "wraning"], "is not one of debug, info, warning, error; did you mean warning?"),
        (["--config", "no-file"], "cannot read no-file: no such file or directory"),
        (["--config", "/"], "cannot read /: it is a directory (is it --data-dir?)"),
        (["--data-dir"], "--data-dir needs a value: DIR"),
        (["--nodes", "many"], "--nodes many: must be a number from 1 to 99"),
        (["--nodes", "0"], "--nodes 0: must be a number from 1 to 99"),
        (["--nodes", "3", "--port", "99999"], "--port 99999: must be a number from 0 to 65535"),
        (["--nodes", "3", "--listen", ":9092"], "--listen is for one node; a cluster has --data-dir, --port and --set"),
        (["--nodes", "3", "file"], "FILE is for one node; a cluster has --data-dir, --port and --set"),
        (["--nodes", "3", "--set", "node.id=7"], "--set node.id: each node of a cluster has its own"),
        (
            ["--nodes", "3", "--set", "num.partition=2"],
            "there is no setting num.partition; did you mean num.partitions?",
        ),
        (["--port", "9092"], "--port and --restart are for --nodes N; one node has --listen HOST:PORT"),
        (["--faults", "127.0.0.1:0"], "--faults is for a cluster: pass --nodes N too, such as --nodes 3"),
        (
            ["--nodes", "3", "--faults", "0.0.0.0:9900"],
            "--faults 0.0.0.0:9900: other machines could kill the nodes; pass 127.0.0.1:9900",
        ),
        (
            ["--nodes", "3", "--faults", "127.0.0.1:0", "--restart"],
            "--faults and --restart exclude each other: remove one of the two",
        ),
        (
            ["--nodes", "3", "--faults", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"],
            "--faults and --metrics-listen exclude each other: remove one of the two",
        ),
        (["--restart"], "--port and --restart are for --nodes N; one node has --listen HOST:PORT"),
    ],
)
def test_a_wrong_command_line_prints_its_usage(
    words: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        commands.run("start", ["--data-dir", str(tmp_path / "data"), *words])
    assert end.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith("Usage: barnabas start [OPTIONS] [FILE]\nTry ")
    assert re.search(f"^error: .*{re.escape(error)}$", printed, re.MULTILINE)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--set", "listeners=SASL_SSL://127.0.0.1:0"], "SASL_SSL"),
        (["--set", "num.partitions=lots"], "num.partitions=lots: must be a whole number"),
        (
            ["--set", "log.dirs=data,more"],
            "data is not formatted: mount its disk if it has one; else `barnabas storage format -t CLUSTER-ID -c FILE`",
        ),
        (["--set", "barnabas.metrics.listen=9"], "barnabas.metrics.listen 9: must be HOST:PORT"),
        (["--nodes", "3", "--metrics-listen", "9"], "--metrics-listen 9: must be HOST:PORT"),
    ],
)
def test_a_start_that_fails_leaves_nothing_behind(
    words: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [] if "log.dirs" in words[1] else ["--data-dir", "data"]
    assert commands.run("start", [*given, *words]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert error in line
    assert "Errno" not in line
    assert list(tmp_path.iterdir()) == []


def test_a_log_of_json_has_one_object_a_line(tmp_path: Path) -> None:
    options = ("--log-format", "json", "--set", "node.id=7", "--set", "process.roles=broker,controller")
    with Node(tmp_path / "data", *options) as node:
        second = run("start", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0", *options)
        assert node.signal(signal.SIGTERM) == 0
    for said in (node.log_path.read_text(), second.stderr):
        lines = [json.loads(line) for line in said.splitlines()]
        assert {each["node"] for each in lines} == {7}
        assert all({"time", "level", "logger", "message"} <= each.keys() for each in lines)
    assert (lines[-1]["level"], second.returncode) == ("ERROR", 1)
    assert " is in use by another broker (stop " in lines[-1]["message"]


def test_a_locked_directory_is_refused_in_one_line(tmp_path: Path) -> None:
    with Node(tmp_path / "data") as node:
        second = run("start", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
        assert second.returncode == 1
        assert second.stdout == ""
        assert re.fullmatch(
            r"error: \S+ is in use by another broker \(stop .* or pass another --data-dir\)\n", second.stderr
        )
        assert node.signal(signal.SIGTERM) == 0


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("cluster.id=AAAAAAAAAAAAAAAAAAAAAw", "belongs to cluster"),
        ("node.id=77", "belongs to node 1, not to 77"),
        ("num.partitions=lots", "num.partitions"),
        ("listeners=PLAINTEXT:/bad", "listeners"),
    ],
)
def test_a_foreign_or_wrong_setting_is_refused_in_one_line(tmp_path: Path, setting: str, words: str) -> None:
    formatted = run("storage", "format", "--data-dir", str(tmp_path / "data"))
    assert formatted.returncode == 0
    options = [] if setting.startswith("listeners") else ["--listen", "127.0.0.1:0"]
    refused = run("start", "--data-dir", str(tmp_path / "data"), *options, "--set", setting)
    assert refused.returncode == 1
    assert words in refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr


def test_a_taken_port_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = run("start", "--data-dir", str(tmp_path / "data"), "--listen", address, "--log-level", "warning")
    assert refused.returncode == 1
    assert refused.stderr == (
        f"error: cannot listen on {address}: Address already in use"
        " (is another broker running? --listen HOST:0 picks a free port)\n"
    )
    assert not (tmp_path / "data").exists()


def test_a_taken_port_of_the_metrics_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = ("--listen", "127.0.0.1:0", "--metrics-listen", address, "--log-level", "warning")
        refused = run("start", "--data-dir", str(tmp_path / "data"), *options)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"error: cannot serve metrics on {address}: Address already in use"
        " (is another broker running? port 0 picks a free one)\n"
    )


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("192.0.2.1:9092", "is it an address of this machine?"),
        ("nowhere.invalid:9092", "cannot listen on nowhere.invalid"),
    ],
)
def test_an_address_that_is_not_ours_is_not_called_taken(tmp_path: Path, address: str, hint: str) -> None:
    refused = run("start", "--data-dir", str(tmp_path / "data"), "--listen", address, "--log-level", "warning")
    assert refused.returncode == 1
    assert hint in refused.stderr
    assert "is another broker running?" not in refused.stderr
    assert refused.stderr.count("\n") == 1, refused.stderr


def test_a_directory_that_is_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    refused = run("start", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
    assert refused.returncode == 1
    assert refused.stderr == f"error: {tmp_path / 'data'} is a file, not a directory (pass another --data-dir)\n"


def test_a_directory_is_asked_for() -> None:
    refused = run("start")
    assert refused.returncode == 2
    assert refused.stderr == (
        "Usage: barnabas start [OPTIONS] [FILE]\n"
        "Try 'barnabas start --help' for help.\n"
        "error: no data directory (pass --data-dir DIR, or set log.dirs in --config FILE)\n"
    )


def test_a_properties_file_and_what_overrides_it(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(f"log.dirs={tmp_path}/data\nnum.partitions=3\nno.such=1\n")
    with Node(tmp_path / "data", "--config", str(properties), "--set", "num.partitions=5") as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
        assert len(admin.list_topics("fresh", timeout=PATIENCE_SECONDS).topics["fresh"].partitions) == 5
        assert "no.such is ignored: there is no setting no.such" in node.log_path.read_text()
        assert node.signal(signal.SIGTERM) == 0


@pytest.mark.parametrize("formatted", [True, False])
@pytest.mark.parametrize("file", ["kafka-4.properties", "kafka-3-kraft.properties", "hand-made.properties"])
def test_a_file_of_apache_kafka_starts_a_node(tmp_path: Path, file: str, formatted: bool) -> None:
    """The settings are unchanged but for the ports and the directory, which tests must not share."""
    text = (Path(__file__).parents[1] / "config" / "properties" / file).read_text()
    port = free_port()
    for number in ("9092", "19092", "29093", "9093"):
        text = re.sub(
            rf"(//[\w.]*|localhost|kafka.internal):{number}\b", rf"\1:{port if number == '9092' else 0}", text
        )
    config = tmp_path / "server.properties"
    config.write_text(text.replace("/tmp/kraft-combined-logs", f"{tmp_path}/data"))
    cluster_id = "4L6g3nShT-eMCtK--X86sw"
    if formatted:
        assert run("storage", "format", "-t", cluster_id, "-c", str(config)).returncode == 0
    node = subprocess.Popen(
        command("start", str(config), "--insecure"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    )
    try:
        assert node.stdout is not None
        lines = [node.stdout.readline() for _ in range(1 + text.count("INTERNAL://0"))]
        assert f"barnabas ready on localhost:{port}\n" in lines
        metadata = AdminClient({"bootstrap.servers": f"localhost:{port}"}).list_topics(timeout=PATIENCE_SECONDS)
        assert [(broker.host, broker.port) for broker in metadata.brokers.values()] == [("localhost", port)]
        assert not formatted or metadata.cluster_id == cluster_id
    finally:
        node.send_signal(signal.SIGTERM)
        assert node.communicate()[1].count("Traceback") == 0
    assert node.returncode == 0


def test_a_setting_that_asks_for_protection_stops_the_start(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("ssl.client.auth=required\nssl.keystore.password=hunter2\n")
    refused = run("start", str(config), "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: ssl.client.auth=required: protects nothing, because no listener has SSL")
    assert (refused.stderr.count("\n"), "hunter2" in refused.stderr) == (1, False)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("option", ["--listen", "--metrics-listen"])
def test_a_port_that_other_machines_reach_stops_the_start_unless_it_may(tmp_path: Path, option: str) -> None:
    data = tmp_path / "data"
    other = ["--listen", "127.0.0.1:0"] if option == "--metrics-listen" else []
    refused = run("start", "--data-dir", str(data), option, "0.0.0.0:0", *other)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
    assert "without" in refused.stderr
    assert "--insecure (barnabas.insecure=true) starts the node as it is" in refused.stderr
    assert not data.exists()
    with Node(data, option, "0.0.0.0:0", "--insecure") as node:
        assert node.signal(signal.SIGTERM) == 0
    assert "serves every address of this machine" in node.log_path.read_text()


def test_the_environment_is_read_as_the_container_image_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "KAFKA_NUM_PARTITIONS", "3")
    monkeypatch.setitem(ENVIRONMENT, "KAFKA_NODE_ID", "5")
    monkeypatch.setitem(ENVIRONMENT, "KAFKA_NUM_PARTITION", "4")
    monkeypatch.setitem(ENVIRONMENT, "KAFKA_HEAP_OPTS", "-Xmx1g")
    monkeypatch.setitem(ENVIRONMENT, "CLUSTER_ID", "4L6g3nShT-eMCtK--X86sw")
    with Node(tmp_path / "data", "--set", "node.id=6") as node:
        metadata = AdminClient({"bootstrap.servers": node.bootstrap_servers}).list_topics("t", timeout=PATIENCE_SECONDS)
        assert (metadata.cluster_id, list(metadata.brokers)) == ("4L6g3nShT-eMCtK--X86sw", [6])
        assert node.signal(signal.SIGTERM) == 0
    log = node.log_path.read_text()
    assert log.count(" is ignored: ") == 1
    assert "KAFKA_NUM_PARTITION is ignored: there is no setting num.partition; did you mean num.partitions?" in log


def test_several_listeners_each_advertise_what_was_dialled(tmp_path: Path) -> None:
    """Trap 25: the address in Metadata is that of the listener the client came in by."""
    with Node(tmp_path / "data", "--listen", "localhost:0") as node:
        second = _rest_of_ready_lines(node, 1)
        hosts = {node.port: node.host, **{int(line.rsplit(":", 1)[1]): "localhost" for line in second}}
        assert sorted(hosts.values()) == ["127.0.0.1", "localhost"]
        for port, host in hosts.items():
            brokers = (
                AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=PATIENCE_SECONDS).brokers
            )
            assert [(broker.host, broker.port) for broker in brokers.values()] == [(host, port)]
        assert node.signal(signal.SIGTERM) == 0


def _rest_of_ready_lines(node: Node, count: int) -> list[str]:
    assert node.process.stdout is not None
    return [node.process.stdout.readline().decode().strip() for _ in range(count)]


def test_explicit_advertised_listeners_are_respected(tmp_path: Path) -> None:
    with Node(tmp_path / "data", "--set", "advertised.listeners=PLAINTEXT://broker.example:1234") as node:
        with socket.create_connection((node.host, node.port)) as client:
            # Metadata version 1 of no topics.
            client.sendall(struct.pack(">ihhihi", 14, 3, 1, 5, -1, 0))
            answer = client.makefile("rb").read(struct.unpack(">i", client.recv(4, socket.MSG_WAITALL))[0])
        assert b"broker.example" in answer
        assert struct.pack(">i", 1234) in answer
        assert node.signal(signal.SIGTERM) == 0


def test_storage_commands(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    missing = run("storage", "info", "--data-dir", data)
    assert missing.returncode == 1
    assert f"{data} does not exist" in missing.stderr
    cluster_id = run("storage", "random-uuid").stdout.strip()
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", cluster_id)
    formatted = run("storage", "format", "-t", cluster_id, "--standalone", "--data-dir", data)
    assert (formatted.returncode, formatted.stderr) == (0, "")
    again = run("storage", "format", "-t", cluster_id, "--data-dir", data)
    assert again.returncode == 1
    assert "already formatted" in again.stderr
    assert run("storage", "format", "-t", cluster_id, "--ignore-formatted", "--data-dir", data).returncode == 0
    told = run("storage", "info", "--data-dir", data)
    assert told.returncode == 0
    assert f"CLUSTER-ID    {cluster_id}\n" in told.stdout
    with Node(tmp_path / "data") as node:
        assert node.signal(signal.SIGTERM) == 0


def test_help_names_every_command() -> None:
    told = run("--help")
    assert told.returncode == 0
    for name in ("start", "storage", "topic", "produce", "consume", "group", "config", "demo"):
        assert re.search(rf"^\s+{name}\s", told.stdout, re.MULTILINE), name
    assert "--data-dir" in run("start", "--help").stdout
    assert run("start", "help").stdout == run("start", "--help").stdout


def test_a_node_of_a_cluster_starts_only_on_a_formatted_directory(tmp_path: Path) -> None:
    file = tmp_path / "broker.properties"
    text = (Path(__file__).parents[1] / "config" / "properties" / "kafka-4-broker.properties").read_text()
    file.write_text(text.replace("/tmp/kraft-broker-logs", f"{tmp_path}/data"))
    result = run("start", str(file))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == (
        f"error: {tmp_path}/data is not formatted, and this node is not alone: "
        "`barnabas storage format -t CLUSTER-ID -c FILE` formats it (`barnabas cluster info` shows the id of a cluster that runs)"
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("first", ["kafka-4-controller", "kafka-4"])
def test_the_files_of_two_nodes_are_a_cluster(tmp_path: Path, first: str) -> None:
    """A controller and a broker; or a node that is both, alone at first, and a broker that joins it."""
    ports = {"9092": str(free_port()), "9093": str(free_port())}
    nodes = []
    try:
        for file, options in ((first, ["--standalone"]), ("kafka-4-broker", [])):
            text = (Path(__file__).parents[1] / "config" / "properties" / f"{file}.properties").read_text()
            text = re.sub(r":(909[23])\b", lambda found: f":{ports[found[1]]}", text)
            written = tmp_path / f"{file}.properties"
            written.write_text(re.sub(r"log\.dirs=.*", f"log.dirs={tmp_path}/{file}", text))
            formatted = run("storage", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c", str(written), *options)
            assert formatted.returncode == 0, formatted.stderr
            words = command("start", "--config", str(written), "--insecure", "--log-level", "error")
            nodes.append(subprocess.Popen(words, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True))
            # Both brokers would have one port for clients.
            ports["9092"] = str(free_port())
        ready = [node.stdout.readline() for node in nodes if node.stdout is not None]
        assert all(line.startswith("barnabas ready on localhost:") for line in ready), ready
        address = ready[1].split()[-1]
        admin = AdminClient({"bootstrap.servers": address})
        metadata = admin.list_topics(timeout=PATIENCE_SECONDS)
        assert metadata.cluster_id == "4L6g3nShT-eMCtK--X86sw"
        assert sorted(metadata.brokers) == ([2] if first == "kafka-4-controller" else [1, 2])
        copies = len(metadata.brokers)
        admin.create_topics([NewTopic("orders", 4, copies)])["orders"].result(PATIENCE_SECONDS)
        producer = Producer({"bootstrap.servers": address, "transactional.id": "till"})
        producer.init_transactions(PATIENCE_SECONDS)
        for _ in range(2):
            producer.begin_transaction()
            for partition in range(4):
                producer.produce("orders", "x", partition=partition)
            producer.commit_transaction(PATIENCE_SECONDS)
        for node in reversed(nodes):
            node.terminate()
            assert node.wait(PATIENCE_SECONDS) == 0
    finally:
        for node in nodes:
            node.kill()
            node.communicate()
