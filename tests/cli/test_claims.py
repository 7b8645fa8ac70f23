"""`barnabas claims` against a broker, with payloads in a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from barnabas.claims import ClaimProducer
from barnabas.claims.claim import HEADER
from barnabas.claims.payloads import store_payload
from barnabas.claims.store import open_store
from barnabas.cli.claims import claims
from barnabas.client.admin import Admin, TopicPartition
from barnabas.embedded.broker import Broker
from barnabas.protocol.errors import ErrorCode

PATIENCE_SECONDS = 60


class Stage:
    """A topic `videos` and a folder."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        broker.create_topic("videos", partitions=2)

    def run(self, *arguments: str, store: str | None = None) -> Result:
        address = ["-b", self.broker.bootstrap_servers]
        return CliRunner().invoke(claims, [*arguments, "--store", store or str(self.folder), *address])

    def data(self, *arguments: str) -> Any:
        result = self.run(*arguments, "-o", "json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def produce(self, topic: str, *values: str, **options: Any) -> None:
        producer = ClaimProducer(
            Producer({"bootstrap.servers": self.broker.bootstrap_servers}), str(self.folder), threshold=6
        )
        for value in values:
            producer.produce(topic, value, partition=0, **options)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def orphan(self, topic: str, value: bytes) -> None:
        """Store a payload as a producer does that dies before it sends the record."""
        store_payload(open_store(str(self.folder)), f"{self.broker.cluster_id}/{topic}", value)

    def age(self) -> None:
        """Make everything in the store two days older."""
        for path in self.folder.rglob("*"):
            if path.is_file():
                then = path.stat().st_mtime - 2 * 86_400
                os.utime(path, (then, then))

    def left(self) -> list[bytes]:
        """Return the payloads in the store."""
        return sorted(each.read_bytes() for each in self.folder.rglob("*") if each.is_file() and each.stat().st_size)


@pytest.fixture
def stage(barnabas: Broker, tmp_path: Path) -> Stage:
    return Stage(barnabas, tmp_path)


def test_an_orphan_is_deleted_after_the_grace_and_nothing_live_ever(stage: Stage) -> None:
    stage.produce("videos", "payload 1", "small", "payload 2")
    stage.orphan("videos", b"orphan")
    assert stage.data("sweep", "videos")["deleted"] == 0
    stage.age()
    stage.orphan("videos", b"young orphan")
    wanted = {
        "records": 3, "claims": 2, "payloads": 4, "named": 2, "young": 1, "spared": 0, "deleted": 1, "deleted_bytes": 6,
        "unfinished": 0, "invalid_claims": 0, "others": 0, "read": ["videos"],
    }  # fmt: skip
    assert stage.data("sweep", "videos", "--dry-run") == {**wanted, "status": "would be deleted"}
    assert len(stage.left()) == 4
    assert stage.data("sweep", "videos") == {**wanted, "status": "deleted"}
    assert stage.left() == [b"payload 1", b"payload 2", b"young orphan"]
    stage.age()
    assert stage.run("sweep", "videos", "--older-than", "1h").exit_code == 0
    assert stage.left() == [b"payload 1", b"payload 2"]
    # Retention deletes the first record; its payload follows it.

    with Admin(stage.broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition("videos", 0): 1})
    assert stage.data("sweep", "videos")["deleted"] == 1
    assert stage.left() == [b"payload 2"]
    assert stage.data("audit", "videos")["wrong"] == 0


def test_dead_letters_of_the_topic_and_named_topics_are_read_too(stage: Stage) -> None:
    """Their records are copies: the claims name payloads of the first topic."""
    prefix = f"{stage.broker.cluster_id}/videos"
    for topic, value in (("videos.dlq", b"dead letter"), ("videos-test", b"replayed")):
        stage.broker.create_topic(topic, partitions=1)
        claim = store_payload(open_store(str(stage.folder)), prefix, value)
        producer = Producer({"bootstrap.servers": stage.broker.bootstrap_servers})
        producer.produce(topic, claim.encoded(), headers=[(HEADER, b"1")])
        producer.flush(PATIENCE_SECONDS)
    stage.age()
    result = stage.run("sweep", "videos", "videos-test")
    assert (result.exit_code, result.stderr) == (0, "read too: videos.dlq\n")
    assert stage.left() == [b"dead letter", b"replayed"]
    assert stage.data("sweep", "videos")["deleted"] == 1
    assert stage.left() == [b"dead letter"]


def test_payloads_of_deleted_topics(stage: Stage) -> None:
    stage.produce("videos", "payload 1")
    stage.broker.create_topic("old", partitions=1)
    stage.produce("old", "payload of old")
    stage.age()
    nothing = stage.run("sweep", "--deleted-topics")
    assert nothing.exit_code == 1
    assert "has no payload of a topic that was deleted" in nothing.stderr
    admin = AdminClient({"bootstrap.servers": stage.broker.bootstrap_servers})
    admin.delete_topics(["old"])["old"].result(PATIENCE_SECONDS)
    gone = stage.run("sweep", "old")
    assert (gone.exit_code, gone.stderr.count("\n")) == (1, 1)
    assert "topic old does not exist" in gone.stderr
    assert stage.data("sweep", "--deleted-topics")["deleted"] == 1
    assert stage.left() == [b"payload 1"]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["sweep", "videos"], 1, "there is no claim in videos, and no payload of it in file://"),
        (["audit", "videos"], 1, "there is no claim in videos (0 records were read)"),
        (["sweep", "nowhere"], 1, "topic nowhere does not exist"),
        (["sweep"], 2, "Missing argument 'TOPIC…'."),
        (["audit"], 2, "Missing argument 'TOPIC…'."),
        (["sweep", "videos", "--older-than", "1m"], 2, "give 10m or more"),
        (["sweep", "videos", "--cluster", "../x"], 1, "cannot be a part of a payload's path"),
        (["sweep", "videos", "--storage", "a=b"], 1, "is a folder, and takes no options of an object store"),
    ],
)
def test_what_is_mistaken_is_one_sentence(stage: Stage, arguments: list[str], code: int, error: str) -> None:
    result = stage.run(*arguments)
    assert result.exit_code == code
    assert error in " ".join(result.stderr.split())


def test_old_payloads_of_topics_without_claims_need_a_word(stage: Stage) -> None:
    stage.orphan("videos", b"orphan")
    stage.age()
    result = stage.run("sweep", "videos")
    assert result.exit_code == 1
    assert "is it another cluster's? Nothing was deleted (--without-claims deletes them)" in " ".join(
        result.stderr.split()
    )
    assert stage.data("sweep", "videos", "--without-claims")["deleted"] == 1
    assert stage.left() == []


def test_a_store_that_has_none_of_the_payloads(stage: Stage, tmp_path: Path) -> None:
    stage.produce("videos", "payload 1")
    other = tmp_path / "other"
    other.mkdir()
    result = stage.run("sweep", "videos", store=str(other))
    assert result.exit_code == 1
    assert "has no payload of videos, which has 1 claim (is it another store" in " ".join(result.stderr.split())
    assert stage.run("sweep", "videos", store="/no/where").exit_code == 1


def test_a_store_that_does_not_answer_is_one_sentence(stage: Stage) -> None:
    stage.produce("videos", "payload 1")
    (folder,) = stage.folder.iterdir()
    (folder / "videos").rename(folder / "hidden")
    (folder / "videos").write_text("a file where a folder was")
    result = stage.run("audit", "videos")
    assert (result.exit_code, result.stderr.count("error: ")) == (1, 1)
    assert "Not a directory" in " ".join(result.stderr.split())


def test_the_audit_names_what_is_gone_and_damaged(stage: Stage) -> None:
    stage.produce("videos", "payload 1", "payload 2", "payload 3", "payload 4")
    stage.produce("videos", "small", headers=[("h", b"")])
    producer = Producer({"bootstrap.servers": stage.broker.bootstrap_servers})
    producer.produce("videos", b"?", partition=1, headers=[(HEADER, b"1")])
    producer.flush(PATIENCE_SECONDS)
    files = {each.read_bytes(): each for each in stage.folder.rglob("*") if each.is_file()}
    files[b"payload 1"].unlink()
    files[b"payload 2"].write_bytes(b"payloaD 2")
    files[b"payload 3"].write_bytes(b"payload")
    result = stage.run("audit", "videos", "-o", "json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["records"], found["claims"], found["wrong"], found["payload_bytes"]) == (6, 5, 4, 9)
    reasons = {(each["partition"], each["offset"]): each["what"] for each in found["errors"]}
    assert reasons[0, 0].startswith("the payload of videos-0@0 is gone: file://")
    assert reasons[0, 1].startswith(
        "the payload of videos-0@1 is damaged, it has another SHA-256 than its claim: file://"
    )
    assert reasons[0, 2].startswith("the payload of videos-0@2 is damaged, it has 7 bytes instead of 9: file://")
    assert reasons[1, 0] == "the claim of videos-1@0 is not valid: its value is not JSON"
    quick = json.loads(stage.run("audit", "videos", "--sizes-only", "-o", "json").stdout)
    assert [each["offset"] for each in quick["errors"]] == [0, 2, 0]
    shown = stage.run("audit", "videos")
    assert "is gone" in shown.stdout


def test_a_broker_that_fails_deletes_nothing(stage: Stage) -> None:
    stage.produce("videos", "payload 1")
    stage.orphan("videos", b"orphan")
    stage.age()
    stage.broker.fail("Fetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED, times=None)
    assert stage.run("sweep", "videos").exit_code == 1
    stage.broker.heal()
    assert stage.left() == [b"orphan", b"payload 1"]
