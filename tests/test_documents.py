"""Every command of the README and of the pages of docs/ is typed, in order, page by page."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click
import confluent_kafka
import pytest

import barnabas
from barnabas.claims import ClaimProducer, open_store
from barnabas.claims.payloads import store_payload
from barnabas.cli.commands import COMMANDS
from barnabas.client.admin import Admin
from barnabas.retries.headers import FailureHeaders, write_failure
from barnabas.verify.history import write_history
from tests.changeable_quorum import changeable_quorum
from tests.cluster.waiting import wait_for
from tests.documents import Block, Typist, blocks, comparable, indented_commands, typist
from tests.pages import write_files
from tests.process.process import pid_of
from tests.schemas.registry_server import running_registry
from tests.verify import model

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])

# A list that only gets shorter: what needs another machine, another program, or root.
NOT_RUN = {
    "README.md: barnabas demo --data-dir my-shop                        # the pipeline and its tables are in my-shop",
    "docs/adopt.md: barnabas adopt next --beside 1 -b kafka-1:9092,kafka-2:9092,kafka-3:9092 --config server.properties --dry-run",
    "docs/adopt.md: barnabas adopt back -b kafka-1:9092,kafka-2:9092,kafka-3:9092 --config server.properties --kafka-release 4.3"
    "      --stop-command 'sudo -n systemctl stop barnabas' --start-command 'sudo -n systemctl start kafka'",
    "docs/adopt.md: barnabas adopt check -b kafka-1:9092 --command-config admin.properties --config server.properties",
    "docs/adopt.md: barnabas adopt status -b kafka-1:9092,kafka-2:9092,kafka-3:9092",
    "docs/cli.md: barnabas acl create --allow-principal User:alice --operation read --topic orders",
    "docs/cli.md: barnabas lake compact --delta /srv/lake/orders",
    "docs/clusters.md: barnabas cluster accept-loss",
    "docs/clusters.md: barnabas cluster voter add 4 --at four.example:9093 -b one.example:9092",
    "docs/cli.md: barnabas profile add local -b localhost:9092 --use",
    "docs/cli.md: barnabas config alter group workers --set share.auto.offset.reset=earliest",
    "docs/monitoring.md: barnabas start --nodes 3 --data-dir cluster --metrics-listen 127.0.0.1:9308",
    'docs/cli.md: eval "$(barnabas completion bash)"     # in ~/.bashrc',
    "docs/containers.md: docker compose up --build --detach",
    "docs/delivery-guarantees.md: python examples/exactly_once.py localhost:9092 orders invoices",
    "docs/export.md: duckdb -c \"SELECT partition, count(*), max(timestamp) FROM 'yesterday/*.parquet' GROUP BY partition\"",
    "docs/from-apache-kafka.md: bin/kafka-server-stop.sh",
    'docs/pipelines.md: make install && source .venv/bin/activate    # or, in an environment of your own: pip install ".[pipelines]"',
    "docs/pipelines.md: python -m shop run --master spark://HOST:7077 -b broker:9092",
    'docs/pipelines.md: python -m shop run -b localhost:9092 --master "local[2]"    # in the project\'s folder',
    "docs/retries.md: barnabas deliver orders.delayed --to orders",
    "docs/schemas.md: curl http://localhost:8081/schemas/ids/17/schema > schemas/17.avsc",
    "docs/schemas.md: protoc --include_imports --descriptor_set_out=orders.desc orders.proto",
    "docs/security.md: ssh -N -L 9092:localhost:9092 broker.example.org &",
    "docs/spark-operating.md: export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… AWS_REGION=eu-central-1",
    "docs/spark-operating.md: export PYSPARK_PYTHON=$(which python)",
    'docs/spark-operating.md: ln -s "$VIRTUAL_ENV" environment         # the driver\'s environment, with the extra spark',
    "docs/spark-operating.md: python3 -m venv executors",
    "docs/spark-sink.md: cat replicas.json",
    'docs/spark-sink.md: ADMIN="--bootstrap-server broker:9093 --command-config admin.properties"',
    'docs/spark.md: ADMIN="--bootstrap-server broker:9093 --command-config admin.properties"',
    "docs/security.md: openssl rand -base64 24 > password.txt",
    "docs/security.md: barnabas token create --renewer-principal User:scheduler --command-config client.properties",
    "docs/cli.md: barnabas token create --renewer-principal User:scheduler --command-config client.properties -o json > token.json",
    "docs/security.md: barnabas topic list -b kafka.example.org:9093 --command-config client.properties",
    "docs/security.md: barnabas config alter broker 1 --command-config client.properties"
    " --set listener.name.sasl_ssl.ssl.keystore.location=/etc/kafka/node-2027.pem",
    "docs/kubernetes.md: kubectl create namespace kafka",
    "docs/kubernetes.md: for node in 4 3; do",
    "docs/kubernetes.md: kubectl apply -k .",
    "docs/kubernetes.md: barnabas cert dev keys --node 'node=*.barnabas-nodes.kafka.svc,barnabas.kafka.svc,localhost'",
    "docs/upgrade.md: barnabas cluster upgrade --dry-run --command 'ssh {host} /opt/upgrade-barnabas.sh {node}'",
    "docs/systemd.md: for node in 1 2 3; do",
    "docs/systemd.md: sudo useradd --system --home-dir /var/lib/barnabas --shell /usr/sbin/nologin barnabas",
}
# Commands that pages name before they exist: they are typed as soon as there is such a command.
NOT_YET = ("cluster",)
# Half a minute each: `make conform` types them.
LONG = ("docs/cli.md", "docs/clusters.md", "docs/operations.md", "docs/tour.md")
# Pages whose commands print what the page shows.
COMPARED = ("docs/tour.md",)
ALL = {page: found for path in PAGES if (found := blocks(page := str(path.relative_to(ROOT)), path.read_text()))}


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    settings = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
    with barnabas.Broker(config=settings) as running:
        yield running


def a_topic_orders(typing: Typist) -> None:
    typing.type("barnabas topic create orders -p 6 --if-not-exists")
    typing.type("printf 'alice:one\\nbob:two\\n' | barnabas produce orders -K :")


def a_group(name: str) -> Callable[[Typist], None]:
    def prepare(typing: Typist) -> None:
        if "orders" not in typing.type("barnabas topic list"):
            a_topic_orders(typing)
        typing.type(f"barnabas consume orders -g {name} -n 1")

    return prepare


def a_stopped_broker(typing: Typist) -> None:
    before = typing.bootstrap
    typing.type("barnabas start --data-dir data --listen 127.0.0.1:9092")
    a_topic_orders(typing)
    typing.stop(before)


def an_open_transaction(typing: Typist) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": typing.bootstrap, "transactional.id": "billing-7"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"in a transaction")
    producer.flush()
    typing.keep(producer)


def dead_letters(typing: Typist) -> None:
    typing.type("barnabas topic create orders.dlq -p 1")
    producer = confluent_kafka.Producer({"bootstrap.servers": typing.bootstrap})
    for number in range(5):
        error, message = [("TimeoutError", "late"), ("ValueError", "no card")][number % 2]
        failure = FailureHeaders("orders", number, number, 0, "billing", 4, error, message, 0, 0)
        producer.produce("orders.dlq", b"one", b"alice", headers=list(write_failure(failure)))
    assert producer.flush(30) == 0


def decisions_of_a_sink(typing: Typist) -> None:
    typing.type("barnabas topic create __barnabas_sink")


def a_registry(typing: Typist) -> None:
    @contextlib.contextmanager
    def serving() -> Iterator[str]:
        with running_registry() as registry:
            registry.add("orders-value", {"type": "record", "name": "Order", "fields": []})
            yield registry.url

    typing.serve("8081", serving())


def a_second_cluster(typing: Typist) -> None:
    @contextlib.contextmanager
    def serving() -> Iterator[str]:
        with barnabas.Broker() as second:
            yield second.bootstrap_servers

    typing.serve("9093", serving())


def files_of_the_tour(typing: Typist) -> None:
    assert write_files("docs/tour.md", Path.cwd()) == ["worker.py", "transfer.py"]


def lines_with_keys(typing: Typist) -> None:
    Path("keys-and-values.txt").write_text("alice:one\nbob:two\n")
    Path("with-headers.tsv").write_text("alice\ta=b\tone\n")
    typing.type("barnabas topic create copy -p 6")


def a_history(typing: Typist) -> None:
    write_history(Path("run.jsonl"), model.run(1, steps=50))


def properties_of_three_nodes(typing: Typist) -> None:
    page = (ROOT / "docs" / "clusters.md").read_text()
    given = page.partition("```properties\n")[2].partition("```")[0]
    Path("server.properties").write_text(given.replace("/var/lib/barnabas", "data-of-one"))


def a_fourth_broker(typing: Typist) -> None:
    typing.stop()
    typing.type("barnabas start --nodes 4 --data-dir cluster")


def a_stopped_fourth_broker(typing: Typist) -> None:
    stop_node(typing, 4)


def a_stopped_third_node(typing: Typist) -> None:
    stop_node(typing, 3)


def stop_node(typing: Typist, node: int) -> None:
    """Stop a node of the cluster in order, and wait until the other brokers know."""
    process = os.pidfd_open(pid_of(Path(f"cluster/node-{node}")))
    signal.pidfd_send_signal(process, signal.SIGTERM)
    assert select.select([process], [], [], 60)[0] == [process]
    # They are in the order of the nodes.
    others = [each for number, each in enumerate(typing.bootstrap.split(","), 1) if number != node]

    def is_known(address: str) -> bool:
        with Admin(address) as admin:
            return node in [each.id for each in admin.describe_cluster().fenced]

    for address in others:
        wait_for(f"{address} knows that node {node} is stopped", partial(is_known, address))


def a_quorum_that_can_change(typing: Typist) -> None:
    @contextlib.contextmanager
    def serving() -> Iterator[str]:
        with changeable_quorum(Path("changeable")) as (broker, controller):
            typing.serve("9193", contextlib.nullcontext(controller))
            yield broker

    typing.serve("9192", serving())


def payloads(typing: Typist) -> None:
    typing.type("barnabas topic create videos")
    Path("payloads").mkdir()
    producer = ClaimProducer(confluent_kafka.Producer({"bootstrap.servers": typing.bootstrap}), "payloads")
    for value in (b"one" * 200_000, b"small", b"two" * 300_000):
        producer.produce("videos", value)
    assert producer.flush(30) == 0
    (cluster,) = Path("payloads").iterdir()
    store_payload(open_store("payloads"), f"{cluster.name}/videos", b"never sent" * 70_000)
    for file in cluster.glob("videos/*"):
        os.utime(file, (1, 1))


def properties_of_production(typing: Typist) -> None:
    Path("production.properties").write_text("client.id=production\n")


def a_file_of_clusters(typing: Typist) -> None:
    Path("console.toml").write_text('[clusters.laptop]\nbootstrap-server = "localhost:9092"\n')


STATES: dict[str, Callable[[Typist], None]] = {
    "a broker on localhost:9092": lambda typing: None,
    "a broker that was stopped, with its data in ./data": a_stopped_broker,
    "a topic orders with records, and a group shop that has committed and has no members": a_group("shop"),
    "a group billing without members": a_group("billing"),
    "a group orders-app": a_group("orders-app"),
    "a topic orders with records": a_topic_orders,
    "a registry on localhost:8081 with a subject orders-value": a_registry,
    "a topic __barnabas_sink": decisions_of_a_sink,
    "a topic orders.dlq with dead letters": dead_letters,
    "a transaction of billing-7 that is open": an_open_transaction,
    "a history run.jsonl": a_history,
    "a topic videos with payloads in ./payloads": payloads,
    "the files of the tour": files_of_the_tour,
    "the cluster with a fourth broker": a_fourth_broker,
    "the fourth broker is stopped": a_stopped_fourth_broker,
    "the third node is stopped": a_stopped_third_node,
    "a quorum that can change, on localhost:9192, and a controller 4 at localhost:9193 that only reads": a_quorum_that_can_change,
    "a server.properties of three nodes": properties_of_three_nodes,
    "a second cluster on localhost:9093": a_second_cluster,
    "a console.toml": a_file_of_clusters,
    "a production.properties": properties_of_production,
    "files of records, and a topic copy": lines_with_keys,
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.conform) if page in LONG else page for page in ALL]
)
def test_the_commands_of_a_page_work_when_typed(page: str, broker: barnabas.Broker, tmp_path: Path) -> None:
    broker.reset()
    with typist(tmp_path, broker.bootstrap_servers, ROOT) as typing:
        for block in ALL[page]:
            if block.not_run is not None:
                continue
            for words in block.setup:
                STATES[words](typing)
            for number, command in enumerate(block.commands):
                noun = command.split()[1]
                if noun in NOT_YET and noun not in COMMANDS:
                    continue
                printed = typing.type(command)
                if page in COMPARED and block.outputs and not (noun == "-s" and shutil.which("curl") is None):
                    shown = comparable(block.outputs[number], block.differs)
                    assert comparable(printed, block.differs) == shown, command


def every_block() -> list[Block]:
    return [block for found in ALL.values() for block in found]


def test_what_is_not_run_has_a_reason_and_is_listed() -> None:
    assert {block.name for block in every_block() if block.not_run} == NOT_RUN


def test_every_state_is_one_that_can_be_made() -> None:
    asked = {words for block in every_block() for words in block.setup}
    assert asked - set(STATES) == set()
    assert set(STATES) - asked == set()


def test_what_differs_from_run_to_run_is_not_compared() -> None:
    (block,) = blocks("p", "<!-- output: in any order -->\n```console\n$ a \\\n  b\nz  1\n\ny\n$ c\nx\n```\n")
    assert [comparable(each, block.differs) for each in block.outputs] == [["y", "z 1"], ["x"]]
    output = "at 2026-11-27T07:08:59.835Z  127.0.0.1:9092,127.0.0.1:9093\nISR 3,1,2 for 58s\n"
    assert comparable(output, ()) == ["at * *,*", "ISR 3,1,2 for 58s"]
    assert comparable(output, ("other numbers",)) == ["at * *,*", "ISR 1,2,3 for Ns"]


def test_no_command_hides_in_an_indented_block() -> None:
    hidden = {str(path.relative_to(ROOT)): found for path in PAGES if (found := indented_commands(path.read_text()))}
    assert hidden == {}


def test_how_a_page_is_read() -> None:
    text = (
        "<!-- setup: one -->\n<!-- setup: two -->\n```console\n$ barnabas a \\\n  b\noutput\n$ barnabas c\n```\n"
        "<!-- not run: why -->\n```sh\nx  # y\n# z\n```\n```\nmake d\n```\n```\nonly output\n```\n```python\nbarnabas\n```\n"
        "\n```sh\nbarnabas e\n```\n"
    )
    assert blocks("p", text) == [
        Block("p", ("barnabas a    b", "barnabas c"), None, ("one", "two"), ("output", "")),
        Block("p", ("x  # y",), "why", ()),
        Block("p", ("make d",), None, ()),
        Block("p", ("barnabas e",), None, ()),
    ]
    assert indented_commands("a\n\n    barnabas b\n\n```\n    barnabas c\n```\n") == ["barnabas b"]


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_after_make_install_the_environment_is_activated_before_barnabas_is_typed(page: str) -> None:
    text = (ROOT / page).read_text()
    after = text[text.index("`make install` creates") :]
    assert ". .venv/bin/activate" in after.partition("\nbarnabas ")[0]


@pytest.mark.slow
def test_the_check_before_a_copy_fails_while_a_broker_runs(tmp_path: Path) -> None:
    (check,) = [line for each in ALL["docs/backup-and-restore.md"] for line in each.commands if "fails while" in line]
    with typist(tmp_path, "", ROOT) as typing:
        typing.type("barnabas start --data-dir data --listen 127.0.0.1:9092")
        assert re.search("BROKER +running", typing.type("barnabas storage info --data-dir data"))
        with pytest.raises((AssertionError, subprocess.CalledProcessError)):
            typing.type(check)
        typing.stop()
        assert "stopped" in typing.type(check)


@pytest.mark.slow
def test_a_command_that_fails_is_noticed(broker: barnabas.Broker, tmp_path: Path) -> None:
    broker.reset()
    with typist(tmp_path, broker.bootstrap_servers, ROOT) as typing:
        for wrong in (
            "barnabas topic describe absent",
            "echo a | barnabas produce absent",
            "barnabas topic list > file --bogus",
            "barnabas verify --bogus",
            "make nothing",
            "pip install teapot",
            "test -e absent || barnabas storage info --data-dir absent",
        ):
            with pytest.raises((AssertionError, click.ClickException)):
                typing.type(wrong)
