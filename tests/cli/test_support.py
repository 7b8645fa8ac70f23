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
from barnabas.client.admin import ConfigEntry, ConfigResource, ConfigSource
from barnabas.client.features import BrokerFeatures
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from tests.cli.made_up_cluster import MadeUpAdmin

SECRET = "hunter2"


class Cluster(MadeUpAdmin):
    """It plants secrets in settings, and does not describe its groups."""

    def describe_configs(self, resources: Iterable[ConfigResource], **asked: Any) -> dict[ConfigResource, Any]:
        source = ConfigSource.DYNAMIC_TOPIC_CONFIG
        planted = [
            ConfigEntry("plugin.value", f"{SECRET}-a", source, False, False, "string", [], None),
            ConfigEntry("ssl.key.password", f"{SECRET}-b", source, False, True, "password", [], None),
            ConfigEntry("retention.ms", "86400001", source, False, False, "long", [], None),
        ]
        return dict.fromkeys(resources, planted)

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
    assert files["missing.txt"] == "groups.json: no groups for you\n"
    assert set(files) == {
        "about.json", "node.properties", "log-1.txt", "cluster.json", "status.json", "quorum.json", "features.json",
        "log-dirs.json", "topics.json", "configs.json", "missing.txt",
    }  # fmt: skip
    found = {name: json.loads(text) for name, text in files.items() if name.endswith(".json")}
    assert found["configs.json"]["topic orders"] == {"plugin.value": "[hidden]", "retention.ms": "86400001"}
    assert found["features.json"]["1"]["finalized"] == {"metadata.version": 29}


def test_without_a_broker_it_says_so(tmp_path: Path) -> None:
    made = tmp_path / "b.tar.gz"
    result = run(str(made), "--log", str(tmp_path / "absent"), "--config", str(tmp_path / "none"))
    assert result.exit_code == 0
    missing = unpacked(made)["missing.txt"].splitlines()
    assert missing[0].startswith("node.properties: No such file")
    assert missing[1].startswith("log-1.txt: No such file")
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
