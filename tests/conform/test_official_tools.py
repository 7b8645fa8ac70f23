"""Kafka's own command-line tools, the same steps on both brokers: what they print must be equal, addresses and times aside.

Every step is one call of one tool. The steps run in order on one broker of each kind (a tool starts a JVM, which is what takes the
time), and each step is then one test that compares the two outputs after `neutral` has taken out what must differ.
"""

from __future__ import annotations

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import apache_kafka
import pytest

from tests.conform.brokers import BrokerUnderTest, broker

pytestmark = [pytest.mark.conform, pytest.mark.timeout(900)]

# The APIs that one node without transactions serves.
SERVED = {0, 1, 2, 3, *range(8, 17), 18, 19, 20, 21, 22, 23, 32, 33, 35, 37, 42, 44, 46, 47, 55, 57, 60, 61, 74, 75}
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
    step("create for perf", "topics", "--create --topic perf"),
    step("producer perf", "producer-perf", "--topic perf --num-records 2000 --record-size 200 --throughput -1 --producer-props acks=all batch.size=16384", compare="words"),
    step("consumer perf", "consumer-perf", "--topic orders --messages 30 --timeout 20000", compare="words"),
    step("verifiable producer", "verifiable-producer", "--topic orders --max-messages 50 --acks -1", compare="events"),
    step("verifiable consumer", "verifiable-consumer", "--topic orders --group-id verified --max-messages 80 --reset-policy earliest", compare="events"),
    step("delete records", "delete-records", "--offset-json-file {folder}/delete.json", files={"delete.json": json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 2}]})}),
    step("delete records past the end", "delete-records", "--offset-json-file {folder}/past.json", files={"past.json": json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 999999}]})}),
    step("offsets after delete", "get-offsets", "--topic orders --time earliest"),
    step("log dirs", "log-dirs", "--describe --topic-list perf", compare="log dirs"),
    step("dump log", "dump-log", "--files {data}/perf-0/00000000000000000000.log --deep-iteration", bootstrap=False, compare="dump"),
    step("dump index", "dump-log", "--files {data}/perf-0/00000000000000000000.index --index-sanity-check", bootstrap=False, compare="words"),
    step("api versions", "broker-api-versions", "", compare="api versions"),
    step("delete topic", "topics", "--delete --topic latest"),
    step("delete topic missing", "topics", "--delete --topic latest"),
    step("list at the end", "topics", "--list"),
)  # fmt: skip


def run_steps(under_test: BrokerUnderTest, folder: Path) -> dict[str, str]:
    """Run every step in order; what each printed, both streams, with its exit code."""
    printed = {}
    folder.mkdir(parents=True, exist_ok=True)
    for one in STEPS:
        for name, text in one.files.items():
            (folder / name).write_text(text)
        args = [a.format(folder=folder, data=under_test.data_dir) for a in one.args]
        if one.bootstrap:
            args = ["--bootstrap-server", under_test.bootstrap_servers, *args]
        try:
            done = apache_kafka.run_tool(one.tool, *args, stdin=one.stdin, timeout=90)
            text = f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        except subprocess.TimeoutExpired as late:
            text = f"no end after 90 s\n{(late.stdout or b'').decode()}"
        printed[one.name] = neutral(text, under_test, folder)
    return printed


def neutral(text: str, under_test: BrokerUnderTest, folder: Path) -> str:
    """Take out what must differ between two runs: addresses, folders, identities, times."""
    port = under_test.bootstrap_servers.rsplit(":", 1)[1]
    text = text.replace(str(under_test.data_dir), "DATA").replace(str(folder), "FOLDER")
    text = re.sub(rf"(localhost|127\.0\.0\.1)(/127\.0\.0\.1)?:{port}", "ADDRESS", text)
    text = re.sub(r"TopicId: \S+", "TopicId: ID", text)
    text = re.sub(
        r"(console-consumer|consumer|producer|perf-consumer)[-\w]*-[0-9a-f]{8}-[-0-9a-f]{27}", r"\1-UUID", text
    )
    text = re.sub(r"console-consumer-\d+", "console-consumer-N", text)
    text = re.sub(r"\b[0-9a-f]{8}-[-0-9a-f]{27}\b", "UUID", text)
    text = re.sub(
        r"(CreateTime|LogAppendTime|timestamp|baseTimestamp|lastTimestamp|CreateTime):? ?\d{13}", r"\1:T", text
    )
    text = re.sub(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\]", "[T]", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d+", "T", text)
    # Warnings of the JVM and the tools' own logging are not what a tool answers.
    return "\n".join(line.rstrip() for line in text.splitlines() if not re.match(r"(OpenJDK|\[T\] (WARN|INFO))", line))


def view(text: str, how: str) -> object:
    """What of a tool's output is compared: all of it in order, or what stays when figures and order are free."""
    if how == "sorted":
        return sorted(text.splitlines())
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
    if how == "api versions":
        found = re.findall(r"(\w+)\((\d+)\): (\d+)(?: to (\d+))? ", text)
        return {int(key): (int(low), int(high or low)) for _, key, low, high in found}
    return text


@pytest.fixture(scope="session")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    folder = tmp_path_factory.mktemp("tools")
    settings = {"node.id": "1"}

    def run(name: str) -> dict[str, str]:
        with broker(name, folder / name, settings) as under_test:
            return run_steps(under_test, folder / f"{name}-files")

    with ThreadPoolExecutor(2) as both:
        results = dict(zip(("barnabas", "apache-kafka"), both.map(run, ("barnabas", "apache-kafka")), strict=True))
    return results


@pytest.mark.parametrize("one", STEPS, ids=lambda s: s.name.replace(" ", "-"))
def test_a_tool_prints_the_same_on_both_brokers(one: Step, outputs: dict[str, dict[str, str]]) -> None:
    ours, theirs = outputs["barnabas"][one.name], outputs["apache-kafka"][one.name]
    if one.compare in ("configs", "broker configs"):
        # Kafka's newest complete tools are one release behind our settings: what it lists, we must list in the same words.
        missing = view(theirs, one.compare) - view(ours, one.compare)  # type: ignore[operator]
        assert not missing
    elif one.compare == "api versions":
        mine, others = view(ours, one.compare), view(theirs, one.compare)
        assert isinstance(mine, dict)
        assert isinstance(others, dict)
        assert set(mine) >= SERVED
        narrower = {
            k: (r, others[k])
            for k, r in mine.items()
            if k in others and not (r[0] <= others[k][0] and r[1] >= others[k][1])
        }
        assert not narrower
    else:
        assert view(ours, one.compare) == view(theirs, one.compare)
