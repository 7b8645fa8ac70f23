"""`barnabas support bundle`: what is in the archive, what is not, and what it says of the rest."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

from click.testing import CliRunner, Result

from barnabas.cli.session import Session
from barnabas.client.admin import ConfigEntry, ConfigResource, ConfigSource, ResourceType
from barnabas.client.features import BrokerFeatures
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from tests.cli.made_up_cluster import MadeUpAdmin
from tests.cli.metrics_server import metrics_server

SECRET = "hunter2"
STATIC = ConfigSource.STATIC_BROKER_CONFIG
NO_METRICS = "the broker's settings name no barnabas.metrics.listen (pass --metrics URL)"


class Cluster(MadeUpAdmin):
    """It plants secrets in settings, and does not describe its groups."""

    def describe_configs(self, resources: Iterable[ConfigResource], **asked: Any) -> dict[ConfigResource, Any]:
        source = ConfigSource.DYNAMIC_TOPIC_CONFIG
        planted = [
            ConfigEntry("plugin.value", f"{SECRET}-a", source, False, False, "string", [], None),
            ConfigEntry("ssl.key.password", f"{SECRET}-b", source, False, True, "password", [], None),
            ConfigEntry("retention.ms", "86400001", source, False, False, "long", [], None),
        ]
        found: dict[ConfigResource, Any] = {}
        for each in resources:
            found[each] = planted
            if each.type is ResourceType.BROKER and int(each.name) <= len(self.listen):
                at = self.listen[int(each.name) - 1]
                where = ConfigEntry("barnabas.metrics.listen", at, STATIC, True, False, "string", [], None)
                found[each] = [*planted, where]
        return found

    def __init__(self, *listen: str) -> None:
        super().__init__()
        self.listen = listen

    def describe_features(self) -> dict[int, BrokerFeatures | KafkaError]:
        return {1: BrokerFeatures({"metadata.version": (7, 29)}, {"metadata.version": 29}, 5)}

    def describe_groups(self, names: Iterable[str]) -> dict[str, Any]:
        raise error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no groups for you")


def run(*arguments: str, cluster: MadeUpAdmin | None = None) -> Result:
    words = ("support", "bundle", *arguments)
    if cluster is None:
        return CliRunner().invoke(command_group(), (*words, "-b", "127.0.0.1:1"), prog_name="barnabas")
    with mock.patch.object(Session, "admin", return_value=cluster):
        return CliRunner().invoke(command_group(), words, prog_name="barnabas")


def unpacked(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        found = {each.name: archive.extractfile(each) for each in archive.getmembers()}
        return {name.removeprefix("barnabas-support/"): each.read().decode() for name, each in found.items() if each}


def test_it_has_the_cluster_and_the_node_and_no_secret(tmp_path: Path) -> None:
    config, log, client, made = (tmp_path / name for name in ("server.properties", "node.log", "client", "b.tar.gz"))
    config.write_text(
        f"node.id=1\nssl.key.password={SECRET}-c\nplugin.token.x={SECRET}-d\nother={SECRET}-e\nnum.partitions=3\n"
    )
    log.write_text(f"gone\nsaw {SECRET}-e\npassword: {SECRET}-f\nclient {SECRET}-g here\nlast\n")
    client.write_text(f"ssl.key.password={SECRET}-g\n")
    options = ("--config", str(config), "--log", str(log), "--lines", "4", "--command-config", str(client))
    result = run(str(made), *options, cluster=Cluster())
    assert result.exit_code == 0, result.output
    files = unpacked(made)
    assert SECRET not in "".join((*files, *files.values(), result.output))
    assert SECRET.encode() not in made.read_bytes()
    assert made.stat().st_mode & 0o777 == 0o600
    assert "node.id=1" in files["node.properties"]
    assert files["log-1.txt"].splitlines()[-1] == "last"
    assert "gone" not in files["log-1.txt"]
    assert files["missing.txt"].splitlines() == [
        "groups.json: no groups for you",
        f"metrics-1.txt: {NO_METRICS}",
        f"metrics-2.txt: {NO_METRICS}",
        "metrics-3.txt: the broker is fenced",
    ]
    assert set(files) == {
        "about.json", "node.properties", "log-1.txt", "cluster.json", "status.json", "quorum.json", "features.json",
        "log-dirs.json", "topics.json", "configs.json", "missing.txt",
    }  # fmt: skip
    found = {name: json.loads(text) for name, text in files.items() if name.endswith(".json")}
    assert found["configs.json"]["topic orders"] == {"plugin.value": "[hidden]", "retention.ms": "86400001"}
    assert found["features.json"]["1"]["finalized"] == {"metadata.version": 29}


def test_it_has_the_metrics_of_each_node_that_answers_and_no_secret_of_them(tmp_path: Path) -> None:
    client, token, made = (tmp_path / name for name in ("client", "token", "b.tar.gz"))
    client.write_text(f"ssl.key.password={SECRET}-g\n")
    token.write_text(f"{SECRET}-0123456789\n")
    planted = f'a{{client_id="{SECRET}-g"}} 1\nb{{password="{SECRET}-h"}} 2\nc{{of="{SECRET}-0123456789"}} 3\nlast 4\n'
    with metrics_server(planted, token=f"{SECRET}-0123456789") as server:
        # Broker 2 serves on the loopback interface of another machine; the last address is of nobody.
        cluster = Cluster(server.address, "127.0.0.1:9308")
        options = ("--metrics", f"http://{server.address}", "--metrics", "http://127.0.0.1:1/metrics")
        secured = ("--metrics-token", str(token), "--command-config", str(client))
        result = run(str(made), *options, *secured, cluster=cluster)
    assert result.exit_code == 0, result.output
    files = unpacked(made)
    assert SECRET not in "".join((*files, *files.values(), result.output))
    lines = ['a{client_id="[hidden]"} 1', "b{password=[hidden]", 'c{of="[hidden]"} 3', "last 4"]
    assert files["metrics-1.txt"].splitlines() == files["metrics-url-1.txt"].splitlines() == lines
    assert files["missing.txt"].splitlines()[1:] == [
        "metrics-2.txt: served on the loopback interface of kafka-2.warehouse.example.com (pass --metrics URL)",
        "metrics-3.txt: the broker is fenced",
        "metrics-url-2.txt: http://127.0.0.1:1/metrics does not answer: connection refused",
    ]
    assert "missing: metrics-url-2.txt: http://127.0.0.1:1/metrics does not answer" in result.stderr


def test_a_wrong_address_or_token_of_metrics_is_one_sentence(tmp_path: Path) -> None:
    made, token = tmp_path / "b.tar.gz", tmp_path / "token"
    token.write_text(SECRET)
    result = run(str(made), "--metrics", f"http://user:{SECRET}@host")
    assert (result.exit_code, SECRET in result.output) == (2, False)
    assert "must have no user and password" in result.stderr
    result = run(str(made), "--metrics-token", str(token))
    assert (result.exit_code, SECRET in result.output) == (1, False)
    assert "it must hold one token of 16 characters or more" in result.stderr
    assert not made.exists()


def test_without_a_broker_it_says_so(tmp_path: Path) -> None:
    made = tmp_path / "b.tar.gz"
    result = run(str(made), "--log", str(tmp_path / "absent"), "--config", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith(
        f"error: {made} has nothing about the cluster: no broker answered ("
    )
    missing = unpacked(made)["missing.txt"].splitlines()
    assert [line.split(": ")[::2] for line in missing[:2]] == [
        ["node.properties", "no such file or directory"],
        ["log-1.txt", "no such file or directory"],
    ]
    assert missing[2].startswith("everything about the cluster: cannot reach 127.0.0.1:1")
    assert "missing: everything about the cluster: cannot reach" in result.stderr


def test_a_file_that_exists_stays(tmp_path: Path) -> None:
    made = tmp_path / "b.tar.gz"
    made.write_text("mine")
    result = run(str(made))
    assert (result.exit_code, made.read_text()) == (1, "mine")
    assert result.stderr.endswith(f"error: {made} exists (name another file)\n")


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    result = run(str(tmp_path / "absent" / "b.tar.gz"))
    assert result.exit_code == 1
    assert "error: cannot write " in result.stderr
