"""`topic apply` on a real broker: the plan, the question, what was done, and what is refused as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.few_replicas import InSync
from barnabas.cli.topic import topic
from barnabas.cli.topic_apply import Plan, planned
from barnabas.cli.wanted_topics import WantedTopic
from barnabas.client.admin import Admin, ConfigResource, ConfigSource, NewTopic, ResourceType, TopicMetadata, result
from tests.cli.made_up_cluster import pretend

FILE = """
[defaults]
partitions = 3

[defaults.configs]
retention.ms = 86400000

[topics.orders]
partitions = 4

[topics.orders.configs]
compression.type = "zstd"

[topics."orders.dlq"]
replicas = [[0], [0]]
"""


@pytest.fixture
def admin() -> Iterator[Admin]:
    with barnabas.Broker() as running, Admin(running.bootstrap_servers) as admin:
        settings = {"retention.ms": "1000", "cleanup.policy": "compact"}
        admin.create_topics([NewTopic("orders", 2, 1, settings), NewTopic("other", 1, 1), NewTopic("third", 1, 1)])
        yield admin


class Applied:
    """Runs the command on a file."""

    def __init__(self, admin: Admin, folder: Path) -> None:
        self._where = ",".join(f"{each.host}:{each.port}" for each in admin.describe_cluster().brokers)
        self._path = folder / "topics.toml"

    def __call__(self, text: str, *options: str, given: str = "") -> Result:
        self._path.write_text(text.replace("[[0], [0]]", f"[[{self.broker}], [{self.broker}]]"))
        return CliRunner().invoke(topic, ["apply", str(self._path), "-b", self._where, *options], input=given)

    broker = 0


@pytest.fixture
def apply(admin: Admin, tmp_path: Path) -> Applied:
    applied = Applied(admin, tmp_path)
    applied.broker = admin.describe_cluster().brokers[0].id
    return applied


def own(admin: Admin, name: str) -> dict[str, str | None]:
    found: Any = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)])
    (entries,) = found.values()
    return {each.name: each.value for each in entries if each.source is ConfigSource.DYNAMIC_TOPIC_CONFIG}


def partitions(admin: Admin) -> dict[str, int]:
    return {each.name: len(each.partitions) for each in admin.list_topics()}


BEFORE = {"orders": 2, "other": 1, "third": 1}


@pytest.mark.slow
def test_topics_become_what_the_file_says(admin: Admin, apply: Applied) -> None:
    dry = apply(FILE, "--dry-run", "-o", "json")
    assert dry.exit_code == 0, dry.output
    plan = json.loads(dry.stdout)
    assert [tuple(each.values()) for each in plan["changes"]] == [
        ("orders", "grow", "partitions", "2", "4"),
        ("orders", "set", "retention.ms", "1000", "86400000"),
        ("orders", "set", "compression.type", "producer", "zstd"),
        ("orders", "default", "cleanup.policy", "compact", "delete"),
        ("orders.dlq", "create", "partitions", None, "2"),
        ("orders.dlq", "create", "replication-factor", None, "1"),
        ("orders.dlq", "create", "retention.ms", None, "86400000"),
    ]
    assert (plan["done"], plan["topics"], plan["not_in_file"]) == (False, 2, 2)
    check = apply(FILE, "--check")
    assert check.exit_code == 1
    assert "and the cluster differ: 7 changes of 2 topics" in check.stderr.replace("\n", " ")
    for answer in ("", "no\n"):
        refused = apply(FILE, given=answer)
        assert (refused.exit_code, partitions(admin)) == (1, BEFORE)
        assert "nothing was changed (--yes changes without asking)" in refused.stderr.replace("\n", " ")
    done = apply(FILE, given="yes\n")
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines() == [
        "1 topic to create, 1 to grow, 2 settings to change, 1 back to the default; 0 topics already as in the file; 2 others are"
        " not in the file",
        "keys map to other partitions when there are more: a key's old and new records may be in two; `barnabas topic grow TOPIC -p N"
        " --ordered` lets groups read them in order",
        "Type yes to make 7 changes of 2 topics: ",
        "done: 7 changes of 2 topics",
    ]
    assert partitions(admin) == {**BEFORE, "orders": 4, "orders.dlq": 2}
    assert own(admin, "orders") == {"retention.ms": "86400000", "compression.type": "zstd"}
    assert own(admin, "orders.dlq") == {"retention.ms": "86400000"}
    again = apply(FILE, "--check")
    assert again.exit_code == 0
    assert again.stderr == "nothing to change; 2 topics already as in the file; 2 others are not in the file\n"
    assert json.loads(apply(FILE, "--yes", "-o", "json").stdout)["changes"] == []


def test_one_impossible_change_is_no_change(admin: Admin, apply: Applied) -> None:
    fewer = apply("[topics.new]\n[topics.orders]\npartitions = 1\nreplication-factor = 2", "--yes")
    assert (fewer.exit_code, partitions(admin)) == (1, BEFORE)
    assert fewer.stderr.count("error: topic orders has ") == 2
    unknown = apply(
        '[topics.new.configs]\nretention.mss = 1\n[topics.orders.configs]\ncleanup.policy = "shred"', "--yes"
    )
    assert (unknown.exit_code, partitions(admin)) == (1, BEFORE)
    said = unknown.stderr.replace("\n", " ")
    assert "topic new: a topic has no setting retention.mss; did you mean retention.ms?" in said
    assert "cleanup.policy" in said
    assert own(admin, "orders") == {"retention.ms": "1000", "cleanup.policy": "compact"}
    both = apply("[topics.orders]\npartitions = 1\n[topics.new.configs]\nretention.mss = 1", "--check").stderr
    assert both.startswith("error: topic orders has ")
    assert "error: topic new: a topic has no setting retention.mss" in both
    crowded = apply("[topics.new]\nreplication-factor = 3\n[topics.'a b']\npartitions = 1", "--check")
    assert (crowded.exit_code, partitions(admin)) == (1, BEFORE)


def test_more_partitions_on_named_brokers(admin: Admin, apply: Applied) -> None:
    wanted = f"[topics.other]\nreplicas = [[{apply.broker}], [{apply.broker}], [{apply.broker}]]"
    assert apply(wanted, "--yes").exit_code == 0
    found = result(admin.describe_topics(["other"])["other"])
    assert isinstance(found, TopicMetadata)
    assert [each.replicas for each in found.partitions] == [[apply.broker]] * 3
    plan = planned(admin, [WantedTopic("other"), WantedTopic("new", 1, 1, configs={"min.insync.replicas": "2"})])
    assert plan.in_sync == [InSync("other", 1, "1"), InSync("new", 1, "2")]


def test_topics_that_one_broker_less_stops_are_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path := tmp_path / "topics.toml").write_text("[topics.orders]\n")
    plan = Plan({"orders": WantedTopic("orders")}, [], [], 0, [InSync("orders", 2, "2")])
    monkeypatch.setattr("barnabas.cli.topic_apply.planned", lambda *_: plan)
    with pretend():
        found = CliRunner().invoke(topic, ["apply", str(path), "--dry-run"])
    assert found.stderr.splitlines()[1].startswith(
        "warning: topic orders has no more replicas than min.insync.replicas"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--yes", "--dry-run"], "--yes and --dry-run contradict each other"),
        (["--yes", "--check"], "--yes and --check contradict each other"),
        (["-o", "json"], "JSON leaves no place for a question: add --yes, --dry-run or --check"),
    ],
)
def test_options_that_contradict_each_other(tmp_path: Path, options: list[str], said: str) -> None:
    answer = CliRunner().invoke(topic, ["apply", str(tmp_path / "absent"), *options])
    assert answer.exit_code == 2
    assert said.lower() in answer.stderr.lower()
