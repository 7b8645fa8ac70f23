"""`cluster upgrade`: the walk, the features that can be raised, and raising them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from barnabas.client.features import BrokerFeatures
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from tests.cli.rolled_cluster import Rolled, run

OLD = BrokerFeatures({"metadata.version": (7, 25), "share.version": (0, 1)}, {"metadata.version": 25}, 9)
NEW = BrokerFeatures(
    {"metadata.version": (7, 29), "share.version": (0, 1), "group.version": (0, 1)}, {"metadata.version": 25}, 9
)
COMMAND = ("--command", "upgrade {node}")


class Upgraded(Rolled):
    """A broker supports more once it was restarted."""

    def __init__(self, error: KafkaError | None = None) -> None:
        super().__init__()
        self.error = error
        self.asked: list[tuple[dict[str, int], bool]] = []

    def describe_features(self) -> dict[int, BrokerFeatures | KafkaError]:
        return {each: NEW if each in self.restarted else OLD for each in (1, 2, 3)}

    def raise_features(self, levels: Mapping[str, int], *, validate_only: bool = False) -> KafkaError | None:
        self.asked.append((dict(levels), validate_only))
        return self.error


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_the_features_are_raised_only_when_asked_for() -> None:
    cluster = Upgraded()
    result = run(cluster, "upgrade", *COMMAND)
    assert (result.exit_code, cluster.restarted) == (0, [1, 3, 2])
    assert rows(result.stdout)[-4:] == [
        "FEATURE LEVEL SUPPORTED NEW-LEVEL STATUS",
        "group.version 0 0-1 - off",
        "metadata.version 25 7-29 29 can be raised",
        "share.version 0 0-1 - off",
    ]
    assert result.stderr.endswith(
        "raise them with `barnabas cluster upgrade --finalize`, when you no longer want to go back\n"
    )
    assert cluster.asked == [({"metadata.version": 29}, True)]
    named = run(Upgraded(), "upgrade", *COMMAND, "--feature", "share.version", "--dry-run")
    assert "`barnabas cluster upgrade --finalize --feature share.version`" in named.stderr
    result = run(cluster, "upgrade", "--finalize", "--feature", "share.version")
    assert (result.exit_code, result.stderr, len(cluster.restarted)) == (0, "", 3)
    assert cluster.asked[1:] == [({"metadata.version": 29, "share.version": 1}, False)]
    assert "metadata.version 25 7-29 29 raised" in rows(result.stdout)


def test_a_dry_run_shows_both_steps_and_does_none() -> None:
    cluster = Upgraded()
    result = run(cluster, "upgrade", "--finalize", "--dry-run", "-o", "json", *COMMAND)
    assert (result.exit_code, cluster.restarted, cluster.asked) == (0, [], [])
    found = json.loads(result.stdout)
    assert [each["node"] for each in found["nodes"]] == [1, 3, 2]
    assert [each["status"] for each in found["features"]] == ["as high as can be", "off"]


def test_a_node_of_another_version_is_named() -> None:
    cluster = Upgraded()
    result = run(cluster, "upgrade", "1", *COMMAND)
    assert "node 1 supports other features than most: it may run another version\n" in result.stderr
    assert cluster.asked == [], "not every broker supports more"


def test_what_cannot_be_raised() -> None:
    result = run(Upgraded(), "upgrade", "--finalize", "--feature", "share.verson")
    assert result.stderr == (
        "error: not every broker supports the feature share.verson; did you mean share.version? (all support:"
        " metadata.version, share.version)\n"
    )
    cluster = Upgraded(error_for(ErrorCode.INVALID_UPDATE_VERSION, "controller 3 does not support it"))
    cluster.restarted = [1, 2, 3]
    result = run(cluster, "upgrade", "--finalize")
    assert (result.exit_code, "controller 3 does not support it" in result.stderr) == (1, True)
    assert run(Upgraded(), "upgrade").exit_code == 2


def test_a_broker_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Upgraded()
    silent = error_for(ErrorCode.REQUEST_TIMED_OUT, "no answer")
    monkeypatch.setattr(cluster, "describe_features", lambda: {1: NEW, 2: silent})
    result = run(cluster, "upgrade", "--finalize")
    assert (result.exit_code, result.stderr.startswith("error: broker 2: no answer")) == (1, True)
