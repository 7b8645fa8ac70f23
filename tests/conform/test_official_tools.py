"""Kafka's own command-line tools, the same steps on both brokers: what they print must be equal, addresses and times aside.

Every step is one call of one tool. The steps run in order on one broker of each kind, the tools in one JVM, and each step is then one test
that compares the two outputs after `neutral` has taken out what must differ. What a call leaves under way is waited for before the next one.

A broker that is held up for a moment may still show what was before the last change. Steps that came out different are therefore played once
more, all of them on new brokers; one that is wrong is so each time.
"""

from __future__ import annotations

import json
import re
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from barnabas.client.admin import Admin
from barnabas.protocol.errors import KafkaError
from tests.conform.brokers import BrokerUnderTest, broker
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.timeout(3600)]

# Apache Kafka serves these also: voters of a quorum.
REST_SECONDS = 240
NOT_ON_ONE_NODE = {80, 81}
LINES = "".join(f"key{i % 3}\tvalue {i}\n" for i in range(30))


@dataclass(frozen=True)
class Step:
    """One call: the tool, its arguments, what it reads, and how to look at what it prints."""

    name: str
    tool: str
    args: tuple[str, ...]
    stdin: str | None = None
    bootstrap: bool = True
    compare: str = "lines"
    files: dict[str, str] = field(default_factory=dict)


def step(name: str, tool: str, args: str, **more: object) -> Step:
    return Step(name, tool, tuple(args.split()), **more)  # type: ignore[arg-type]


STEPS = (
    step("create", "topics", "--create --topic orders --partitions 3 --replication-factor 1 --config retention.ms=3600000"),
    step("create again", "topics", "--create --topic orders --partitions 3"),
    step("create if absent", "topics", "--create --topic orders --if-not-exists"),
    step("create compacted", "topics", "--create --topic latest --config cleanup.policy=compact --config segment.bytes=1048576"),
    step("create bad config", "topics", "--create --topic bad --config no.such.setting=1"),
    step("create bad value", "topics", "--create --topic bad --config retention.ms=soon"),
    step("create bad name", "topics", "--create --topic bad/name"),
    step("create too many copies", "topics", "--create --topic many --replication-factor 3"),
    step("list", "topics", "--list"),
    step("describe", "topics", "--describe --topic orders"),
    step("describe missing", "topics", "--describe --topic missing"),
    step("describe overrides", "topics", "--describe --topics-with-overrides"),
    step("under replicated", "topics", "--describe --under-replicated-partitions"),
    step("unavailable", "topics", "--describe --unavailable-partitions"),
    step("add partitions", "topics", "--alter --topic orders --partitions 4"),
    step("fewer partitions", "topics", "--alter --topic orders --partitions 2"),
    step("config add", "configs", "--alter --entity-type topics --entity-name orders --add-config max.message.bytes=2000000,retention.ms=7200000"),
    step("config describe", "configs", "--describe --entity-type topics --entity-name orders"),
    step("config describe all", "configs", "--describe --all --entity-type topics --entity-name orders", compare="configs"),
    step("config delete", "configs", "--alter --entity-type topics --entity-name orders --delete-config max.message.bytes"),
    step("config delete missing", "configs", "--alter --entity-type topics --entity-name orders --delete-config max.message.bytes"),
    step("config bad", "configs", "--alter --entity-type topics --entity-name orders --add-config cleanup.policy=burn"),
    step("broker config add", "configs", "--alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=2"),
    step("broker config describe", "configs", "--describe --entity-type brokers --entity-name 1"),
    step("broker default add", "configs", "--alter --entity-type brokers --entity-default --add-config message.max.bytes=2000000"),
    step("broker default describe", "configs", "--describe --entity-type brokers --entity-default"),
    step("broker config describe all", "configs", "--describe --all --entity-type brokers --entity-name 1", compare="broker configs"),
    step("console producer", "console-producer", "--topic orders --reader-property parse.key=true", stdin=LINES),
    step("console consumer", "console-consumer", "--topic orders --from-beginning --max-messages 30 --formatter-property print.key=true --formatter-property print.partition=true --formatter-property print.offset=true --formatter-property print.headers=true", compare="sorted"),
    step("console consumer of a partition", "console-consumer", "--topic orders --partition 0 --offset 2 --max-messages 3 --formatter-property print.offset=true"),
    step("console consumer in a group", "console-consumer", "--topic orders --group readers --from-beginning --max-messages 30", compare="sorted"),
    step("offsets", "get-offsets", "--topic orders"),
    step("offsets earliest", "get-offsets", "--topic orders --time earliest"),
    step("offsets max timestamp", "get-offsets", "--topic orders --time max-timestamp", compare="words"),
    step("offsets at zero", "get-offsets", "--topic-partitions orders:0-2 --time 0"),
    step("groups", "consumer-groups", "--list", compare="sorted"),
    step("groups with state", "consumer-groups", "--list --state", compare="sorted"),
    step("group", "consumer-groups", "--describe --group readers"),
    step("group state", "consumer-groups", "--describe --group readers --state"),
    step("group members", "consumer-groups", "--describe --group readers --members --verbose"),
    step("group missing", "consumer-groups", "--describe --group nobody"),
    step("reset dry", "consumer-groups", "--reset-offsets --group readers --topic orders --to-earliest --dry-run"),
    step("reset shift", "consumer-groups", "--reset-offsets --group readers --topic orders --shift-by -3 --execute"),
    step("reset earliest", "consumer-groups", "--reset-offsets --group readers --topic orders:0 --to-earliest --execute"),
    step("group after reset", "consumer-groups", "--describe --group readers"),
    step("delete offsets", "consumer-groups", "--delete-offsets --group readers --topic orders:1"),
    step("delete group", "consumer-groups", "--delete --group readers"),
    step("delete group missing", "consumer-groups", "--delete --group nobody"),
    step("create queue", "topics", "--create --topic queue"),
    step("fill queue", "console-producer", "--topic queue", stdin=LINES),
    step("create for perf", "topics", "--create --topic perf"),
    step("producer perf", "producer-perf", "--topic perf --num-records 2000 --record-size 200 --throughput -1 --producer-props acks=all batch.size=16384", compare="totals"),
    step("consumer perf", "consumer-perf", "--topic orders --messages 30 --timeout 240000", compare="totals"),
    step("verifiable producer", "verifiable-producer", "--topic orders --max-messages 50 --acks -1", compare="events"),
    step("verifiable consumer", "verifiable-consumer", "--topic orders --group-id verified --max-messages 80 --reset-policy earliest", compare="events"),
    step("delete records", "delete-records", "--offset-json-file {folder}/delete.json", files={"delete.json": json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 2}]})}),
    step("delete records past the end", "delete-records", "--offset-json-file {folder}/past.json", files={"past.json": json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 999999}]})}),
    step("offsets after delete", "get-offsets", "--topic orders --time earliest"),
    step("log dirs", "log-dirs", "--describe --topic-list perf", compare="log dirs"),
    step("dump log", "dump-log", "--files {data}/perf-0/00000000000000000000.log --deep-iteration", bootstrap=False, compare="dump"),
    step("dump index", "dump-log", "--files {data}/perf-0/00000000000000000000.index --index-sanity-check", bootstrap=False, compare="words"),
    step("create transacted", "topics", "--create --topic transacted"),
    step("transactional producer", "producer-perf", "--topic transacted --num-records 200 --record-size 50 --throughput -1 --transactional-id perf --transaction-duration-ms 50", compare="totals"),
    step("transactions", "transactions", "list", compare="words"),
    step("transactions filtered", "transactions", "list --transactional-id-pattern ^pe.*", compare="words"),
    step("transactions of long duration", "transactions", "list --duration-filter 3600000", compare="words"),
    step("transaction", "transactions", "describe --transactional-id perf", compare="words"),
    step("transaction missing", "transactions", "describe --transactional-id nobody"),
    step("producers", "transactions", "describe-producers --topic transacted --partition 0", compare="words"),
    step("hanging transactions", "transactions", "find-hanging --broker-id 1", compare="words"),
    step("abort at no transaction", "transactions", "abort --topic orders --partition 0 --start-offset 0"),
    step("terminate", "transactions", "forceTerminateTransaction --transactionalId perf"),
    step("consumer protocol", "console-consumer", "--topic orders --group modern --command-property group.protocol=consumer --isolation-level read_committed --from-beginning --max-messages 78 --timeout-ms 240000", compare="sorted"),
    step("committed only", "console-consumer", "--topic transacted --isolation-level read_committed --from-beginning --max-messages 200 --timeout-ms 240000"),
    step("all groups", "groups", "--list", compare="sorted"),
    step("groups of a type", "groups", "--list --group-type consumer", compare="sorted"),
    step("groups of a protocol", "groups", "--list --protocol consumer", compare="sorted"),
    step("modern group", "consumer-groups", "--describe --group modern", compare="words"),
    step("modern group state", "consumer-groups", "--describe --group modern --state --verbose", compare="words"),
    step("groups by type", "consumer-groups", "--list --type", compare="sorted"),
    step("group config add", "configs", "--alter --entity-type groups --entity-name workers --add-config share.auto.offset.reset=earliest,share.record.lock.duration.ms=20000"),
    step("group config describe", "configs", "--describe --entity-type groups --entity-name workers"),
    step("group config describe all", "configs", "--describe --all --entity-type groups --entity-name workers", compare="configs"),
    step("group config bad", "configs", "--alter --entity-type groups --entity-name workers --add-config share.record.lock.duration.ms=1"),
    step("group config unknown", "configs", "--alter --entity-type groups --entity-name workers --add-config no.such.setting=1"),
    step("share consumer", "console-share-consumer", "--topic queue --group workers --max-messages 30 --timeout-ms 240000 --formatter-property print.delivery=true --formatter-property print.offset=true", compare="sorted"),
    step("verifiable share consumer", "verifiable-share-consumer", "--topic queue --group-id workers2 --max-messages 30 --offset-reset-strategy earliest", compare="events"),
    step("share groups", "share-groups", "--list", compare="sorted"),
    step("share groups with state", "share-groups", "--list --state", compare="sorted"),
    step("share group", "share-groups", "--describe --group workers", compare="words"),
    step("share group verbose", "share-groups", "--describe --group workers --verbose", compare="words"),
    step("share group state", "share-groups", "--describe --group workers --state", compare="words"),
    step("share group members", "share-groups", "--describe --group workers --members --verbose", compare="words"),
    step("share group missing", "share-groups", "--describe --group nobody"),
    step("share reset dry", "share-groups", "--reset-offsets --group workers --topic queue --to-earliest --dry-run"),
    step("share reset", "share-groups", "--reset-offsets --group workers --topic queue --to-earliest --execute"),
    step("share group after reset", "share-groups", "--describe --group workers", compare="words"),
    step("share consumer again", "console-share-consumer", "--topic queue --group workers --max-messages 30 --timeout-ms 240000", compare="sorted"),
    step("share delete offsets", "share-groups", "--delete-offsets --group workers --topic queue"),
    step("share delete", "share-groups", "--delete --group workers2"),
    step("share delete missing", "share-groups", "--delete --group nobody"),
    step("streams groups", "streams-groups", "--list"),
    step("streams group missing", "streams-groups", "--describe --group nobody"),
    step("streams delete missing", "streams-groups", "--delete --group nobody"),
    step("client quota", "configs", "--alter --entity-type clients --entity-name app --add-config producer_byte_rate=1048576,consumer_byte_rate=2097152,request_percentage=200"),
    step("client quota default", "configs", "--alter --entity-type clients --entity-default --add-config producer_byte_rate=10485760"),
    step("user quota", "configs", "--alter --entity-type users --entity-name alice --add-config consumer_byte_rate=1048576"),
    step("user default quota", "configs", "--alter --entity-type users --entity-default --add-config controller_mutation_rate=10"),
    step("user and client quota", "configs", "--alter --entity-type users --entity-name alice --entity-type clients --entity-name app --add-config producer_byte_rate=4096"),
    step("address quota", "configs", "--alter --entity-type ips --entity-name 127.0.0.9 --add-config connection_creation_rate=5"),
    step("quota unknown", "configs", "--alter --entity-type clients --entity-name app --add-config no_such_rate=5"),
    step("quota bad", "configs", "--alter --entity-type clients --entity-name app --add-config producer_byte_rate=fast"),
    step("client quotas described", "configs", "--describe --entity-type clients", compare="sorted"),
    step("user quotas described", "configs", "--describe --entity-type users", compare="sorted"),
    step("user and client quotas described", "configs", "--describe --entity-type users --entity-type clients", compare="sorted"),
    step("address quotas described", "configs", "--describe --entity-type ips", compare="sorted"),
    step("quota delete", "configs", "--alter --entity-type clients --entity-name app --delete-config producer_byte_rate"),
    step("quota delete missing", "configs", "--alter --entity-type clients --entity-name other --delete-config producer_byte_rate"),
    step("client quota after delete", "configs", "--describe --entity-type clients --entity-name app", compare="sorted"),
    step("password", "configs", "--alter --entity-type users --entity-name bob --add-config SCRAM-SHA-256=[iterations=8192,password=secret],SCRAM-SHA-512=[password=secret]"),
    step("password described", "configs", "--describe --entity-type users --entity-name bob"),
    step("password weak", "configs", "--alter --entity-type users --entity-name bob --add-config SCRAM-SHA-256=[iterations=100,password=secret]"),
    step("password delete", "configs", "--alter --entity-type users --entity-name bob --delete-config SCRAM-SHA-256"),
    step("password delete missing", "configs", "--alter --entity-type users --entity-name carol --delete-config SCRAM-SHA-256"),
    step("client metrics add", "client-metrics", "--alter --name slow --metrics org.apache.kafka.producer. --interval 5000 --match client_id=app"),
    step("client metrics bad", "client-metrics", "--alter --name slow --interval 1"),
    step("client metrics list", "client-metrics", "--list"),
    step("client metrics describe", "client-metrics", "--describe --name slow"),
    step("client metrics as configs", "configs", "--describe --entity-type client-metrics --entity-name slow", compare="configs"),
    step("client metrics delete", "client-metrics", "--delete --name slow"),
    step("features", "features", "describe", compare="features"),
    step("feature at its level", "features", "upgrade --feature group.version=1"),
    step("feature too high", "features", "upgrade --feature group.version=99", compare="words"),
    step("feature unknown", "features", "upgrade --feature no.such.version=1"),
    step("feature downgraded", "features", "downgrade --feature transaction.version=1"),
    step("feature upgraded", "features", "upgrade --feature transaction.version=2"),
    step("dump groups", "dump-log", "--files {data}/__consumer_offsets-0/00000000000000000000.log --offsets-decoder", bootstrap=False, compare="payloads"),
    step("dump transactions", "dump-log", "--files {data}/__transaction_state-0/00000000000000000000.log --transaction-log-decoder", bootstrap=False, compare="payloads"),
    step("dump share states", "dump-log", "--files {data}/__share_group_state-0/00000000000000000000.log --share-group-state-decoder", bootstrap=False, compare="payloads"),
    step("dump metadata", "dump-log", "--files {data}/__cluster_metadata-0/00000000000000000000.log --cluster-metadata-decoder", bootstrap=False, compare="record types"),
    step("api versions", "broker-api-versions", "", compare="api versions"),
    step("delete topic", "topics", "--delete --topic latest"),
    step("delete topic missing", "topics", "--delete --topic latest"),
    step("list at the end", "topics", "--list"),
)  # fmt: skip


def run_steps(under_test: BrokerUnderTest, folder: Path) -> dict[str, str]:
    """Run every step in order; what each printed, both streams, with its exit code."""
    printed = {}
    folder.mkdir(parents=True, exist_ok=True)
    tools = ToolProcess(folder / "tools.log")
    try:
        for one in STEPS:
            for name, text in one.files.items():
                (folder / name).write_text(text)
            args = [a.format(folder=folder, data=under_test.data_dir) for a in one.args]
            if one.bootstrap:
                args = ["--bootstrap-server", under_test.bootstrap_servers, *args]
            printed[one.name] = neutral(tools.run(one.tool, *args, stdin=one.stdin), under_test, folder)
            await_rest(under_test.bootstrap_servers)
    finally:
        tools.close()
    return printed


def await_rest(bootstrap: str) -> None:
    """Wait until the last call's members have left their groups, and the markers of its transactions are written."""
    deadline = time.monotonic() + REST_SECONDS
    busy: object = None
    while time.monotonic() < deadline:
        try:
            with Admin(bootstrap) as admin:
                groups = [each for each in admin.list_groups() if each.state not in ("Empty", "Dead")]
                transactions = [each for each in admin.list_transactions() if each.state.startswith("Prepare")]
        except KafkaError as error:
            busy = error
        else:
            busy = groups or transactions
            if not busy:
                return
        time.sleep(0.05)
    raise AssertionError(f"this does not end: {busy}")


def neutral(text: str, under_test: BrokerUnderTest, folder: Path) -> str:
    """Take out what must differ between two runs: addresses, folders, identities, times."""
    port = under_test.bootstrap_servers.rsplit(":", 1)[1]
    text = text.replace(str(under_test.data_dir), "DATA").replace(str(folder), "FOLDER")
    text = re.sub(rf"(localhost|127\.0\.0\.1)(/127\.0\.0\.1)?:{port}", "ADDRESS", text)
    text = re.sub(r"TopicId: \S+", "TopicId: ID", text)
    text = re.sub(
        r"(console-consumer|consumer|producer|perf-consumer)[-\w]*-[0-9a-f]{8}-[-0-9a-f]{27}", r"\1-UUID", text
    )
    text = re.sub(r"(console-consumer|perf-consumer)-\d+ *", r"\1-N ", text)
    text = re.sub(r"\b[0-9a-f]{8}-[-0-9a-f]{27}\b", "UUID", text)
    text = re.sub(
        r"(CreateTime|LogAppendTime|timestamp|baseTimestamp|lastTimestamp|CreateTime):? ?\d{13}", r"\1:T", text
    )
    text = text.replace("PrepareCommit ", "CompleteCommit")  # the markers are being written still
    text = re.sub(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\]", "[T]", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d+", "T", text)
    # Warnings of the JVM, the tools' own logging, and how the tool was called are not what a tool answers.
    noise = r"OpenJDK|\[T\] (WARN|INFO)|\tat (java\.base/)?(java\.lang\.reflect|jdk\.internal\.reflect|Tools)\."
    return "\n".join(line.rstrip() for line in text.splitlines() if not re.match(noise, line))


def view(text: str, how: str) -> object:
    """What of a tool's output is compared: all of it in order, or what stays when figures and order are free."""
    if how == "sorted":
        return sorted(re.sub(r" {2,}", " ", line).strip() for line in text.splitlines())
    if how == "totals":
        # Every five seconds that a run lasts there is one more line before the last one; a figure over no time is none.
        code, *lines = [line for line in text.splitlines() if line]
        lines = [line for line in lines if not re.match(r"\d+ records sent", line)] + [
            line for line in lines if re.match(r"\d+ records sent", line)
        ][-1:]
        return [code, *view(re.sub(r"\b(NaN|Infinity)\b", "0", "\n".join(lines)), "words")]  # type: ignore[misc]
    if how == "words":
        return re.sub(r"-?\d+([.,:]\d+)*", "N", text).split()
    if how == "configs":
        return {line.strip() for line in text.splitlines()}
    if how == "broker configs":
        return {line.split("=")[0].strip() for line in text.splitlines() if "sensitive=" in line}
    if how == "events":
        events = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return sorted({(e["name"], tuple(sorted(e))) for e in events})
    if how == "log dirs":
        found = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
        return [[set(d), d["error"], [set(p) for p in d["partitions"]]] for b in found["brokers"] for d in b["logDirs"]]
    if how == "dump":
        text = re.sub(
            r"(baseOffset|lastOffset|count|position|size|crc|baseSequence|lastSequence|producerId|sequence|payload|offset): ?\S+",
            r"\1",
            text,
        )
        return {re.sub(r"\d+", "N", line) for line in text.splitlines()}
    if how == "payloads":
        # Batches may be cut differently, and a counter of one broker is ahead of the other's: what is compared is each kind of record.
        found = re.findall(r"\b(?:key|payload): ?.*", text)
        # Since 4.4 the target assignment of an emptied group is written too, without a time.
        found = [one for one in found if not re.search(r'"data":\{"assignmentEpoch":\d+\}\}$', one)]
        found = [re.sub(r"-?\d+", "N", re.sub(r'"[-\w]{20,}"', '"ID"', one)) for one in found]
        # How many of the same kind a list holds depends on how clients happened to be served.
        return {re.sub(r"(\{[^{}]*\}|N)(,\1)+", r"\1", one) for one in found}
    if how == "record types":
        return set(re.findall(r'"type":"(\w+)"', text))
    if how == "features":
        rows = re.findall(
            r"Feature: (\S+)\tSupportedMinVersion: (\S+)\tSupportedMaxVersion: \S+\tFinalizedVersionLevel: (\S+)", text
        )
        # The newest release finalizes a newer version of the metadata; the rest has the same level.
        return {(name, least, level if name != "metadata.version" else "") for name, least, level in rows}
    if how == "api versions":
        found = re.findall(r"(\w+)\((\d+)\): (\d+)(?: to (\d+))? ", text)
        return {int(key): (int(low), int(high or low)) for _, key, low, high in found}
    return text


Printed = dict[str, dict[str, str]]


def play(folder: Path) -> Printed:
    """What each step printed, by broker."""
    settings = {
        "node.id": "1",
        # One partition each, so that a dump of it has all there is.
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        # Else groups that are empty are forgotten on the way when the machine is slow.
        "offsets.retention.check.interval.ms": "86400000",
    }

    def run(name: str) -> dict[str, str]:
        with broker(name, folder / name, settings) as under_test:
            return run_steps(under_test, folder / f"{name}-files")

    names = ("barnabas", "apache-kafka")
    with ThreadPoolExecutor(2) as both:
        return dict(zip(names, both.map(run, names), strict=True))


@pytest.fixture(scope="session")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    first = play(tmp_path_factory.mktemp("tools"))
    different = [one for one in STEPS if why_different(one, first)]
    if not different:
        return first
    second = play(tmp_path_factory.mktemp("tools-again"))
    for one in different:
        warnings.warn(f"{one.name}: {why_different(one, first)}", stacklevel=1)
        for name in first:
            first[name][one.name] = second[name][one.name]
    return first


def why_different(one: Step, outputs: Printed) -> str:
    """What of a step differs more than it may; "" when nothing does."""
    printed = [outputs[name][one.name] for name in ("barnabas", "apache-kafka")]
    try:
        ours, theirs = (view(text, one.compare) for text in printed)
    except (StopIteration, LookupError, ValueError):
        return f"cannot be read: {printed}"
    if one.compare in ("configs", "broker configs"):
        # Kafka's newest complete tools are one release behind our settings: what it lists, we must list in the same words.
        missing = theirs - ours  # type: ignore[operator]
        return f"missing: {missing}" if missing else ""
    if one.compare == "record types":
        # A record at a time is as good as several between a begin and an end, and some kinds only several controllers need.
        more = ours - theirs  # type: ignore[operator]
        return f"Apache Kafka has none of {more}" if more else "" if "TOPIC_RECORD" in ours else "no topics"  # type: ignore[operator]
    if one.compare == "api versions":
        assert isinstance(ours, dict)
        assert isinstance(theirs, dict)
        unknown = set(theirs) - set(ours) - NOT_ON_ONE_NODE
        both = ours.keys() & theirs.keys()
        narrower = {k: (ours[k], theirs[k]) for k in both if ours[k][0] > theirs[k][0] or ours[k][1] < theirs[k][1]}
        return f"unknown: {unknown}, narrower: {narrower}" if unknown or narrower else ""
    return f"{ours!r}\n{theirs!r}" if ours != theirs else ""


@pytest.mark.parametrize("one", STEPS, ids=lambda s: s.name.replace(" ", "-"))
def test_a_tool_prints_the_same_on_both_brokers(one: Step, outputs: Printed) -> None:
    assert not why_different(one, outputs)
