"""Read Apache Kafka's message definitions and write them as one compact data file.

Kafka's artifacts on Maven Central carry the JSON definition of every message they speak. This script fetches the artifacts of
one release, keeps the facts a codec needs (names, types, versions, nullability, defaults, tags, ignorable, map keys, entities)
and drops everything else. The result, `src/barnabas/protocol/schema.json`, is committed; the broker never needs Maven.

Layout of the file: line 1 is the index (release, API table, record families), every further line is one message,
`{"name":…}`, sorted by name, so that a reader finds a message by searching for its line and parses only that.

    python tools/read_schemas.py [--version 4.4.0]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any

ARTIFACTS = {
    "kafka-clients": "clients",
    "kafka-metadata": "metadata",
    "kafka-group-coordinator": "group",
    "kafka-transaction-coordinator": "transaction",
    "kafka-share-coordinator": "share",
    "kafka-raft": "raft",
    "kafka-storage": "storage",
}
MESSAGE_PATH = re.compile(r"(common/message|common/metadata|message)/\w+\.json")
MESSAGE_KEYS = ("name", "type", "apiKey", "listeners", "validVersions", "latestVersionUnstable", "flexibleVersions")
FIELD_KEYS = (
    "name",
    "type",
    "versions",
    "nullableVersions",
    "flexibleVersions",
    "taggedVersions",
    "tag",
    "default",
    "ignorable",
    "mapKey",
    "entityType",
)
COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')
OWN_FIELDS: dict[str, list[dict[str, Any]]] = {
    "BrokerHeartbeatRequest": [
        {
            "name": "ReplicaLogs",
            "type": "[]ReplicaLog",
            "versions": "0+",
            "nullableVersions": "0+",
            "taggedVersions": "0+",
            "tag": 10000,
            "default": "null",
            "ignorable": True,
            "fields": [
                {"name": "TopicId", "type": "uuid", "versions": "0+"},
                {"name": "Partition", "type": "int32", "versions": "0+"},
                {"name": "CurrentLeaderEpoch", "type": "int32", "versions": "0+"},
                {"name": "LastWrittenLeaderEpoch", "type": "int32", "versions": "0+"},
                {"name": "LogEndOffset", "type": "int64", "versions": "0+"},
            ],
        }
    ]
}
"""Tagged fields that Kafka's messages do not have, by message. Kafka's brokers and controllers skip tags that they do not know."""
OUTPUT = Path(__file__).resolve().parent.parent / "src/barnabas/protocol/schema.json"


def fetch_jars(version: str, folder: Path) -> None:
    """Copy the artifacts of one release into `folder` with Maven."""
    for artifact in ARTIFACTS:
        command = [
            *("mvn", "-q", "-B", "-Dstyle.color=never"),
            "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
            f"-Dartifact=org.apache.kafka:{artifact}:{version}",
            f"-DoutputDirectory={folder}",
        ]
        # A download that breaks off is begun again.
        if subprocess.run(command, check=False, cwd=folder).returncode:
            subprocess.run(command, check=True, cwd=folder)


def parse(text: str) -> dict[str, Any]:
    """Parse JSON that carries `//` comments."""
    message: dict[str, Any] = json.loads(COMMENT.sub(lambda match: match.group(1) or "", text))
    return message


def field_facts(field: dict[str, Any]) -> dict[str, Any]:
    facts = {key: field[key] for key in FIELD_KEYS if key in field}
    if "fields" in field:
        facts["fields"] = [field_facts(child) for child in field["fields"]]
    return facts


def message_facts(message: dict[str, Any], family: str) -> dict[str, Any]:
    facts = {key: message[key] for key in MESSAGE_KEYS if key in message}
    if message["type"] == "metadata" and family != "metadata":
        # The records of __remote_log_metadata have types of their own, which are the cluster metadata's numbers again.
        facts["type"] = "remote-metadata"
    if message["type"].startswith("coordinator-"):
        facts["family"] = family
    fields = [*message.get("fields", []), *OWN_FIELDS.get(message["name"], [])]
    facts["fields"] = [field_facts(field) for field in fields]
    if message.get("commonStructs"):
        facts["commonStructs"] = [
            {"name": struct["name"], "fields": [field_facts(field) for field in struct["fields"]]}
            for struct in message["commonStructs"]
        ]
    return facts


def read_jars(version: str, folder: Path) -> list[dict[str, Any]]:
    messages = []
    for artifact, family in ARTIFACTS.items():
        with zipfile.ZipFile(folder / f"{artifact}-{version}.jar") as jar:
            for path in jar.namelist():
                if not MESSAGE_PATH.fullmatch(path):
                    continue
                message = parse(jar.read(path).decode())
                if message["validVersions"] != "none":  # "none" marks a message that Kafka no longer speaks
                    messages.append(message_facts(message, family))
    messages.sort(key=lambda message: message["name"])
    return messages


def index_of(version: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Line 1: what must be known before any single message is needed."""
    apis = {}
    metadata = {}
    coordinators: dict[str, dict[str, list[str | None]]] = {}
    for message in messages:
        kind, name = message["type"], message["name"]
        if kind == "request":
            listeners = message.get("listeners", [])
            unstable = message.get("latestVersionUnstable", False)
            row = [
                name.removesuffix("Request"),
                message["validVersions"],
                message["flexibleVersions"],
                unstable,
                listeners,
            ]
            apis[message["apiKey"]] = row
        elif kind == "metadata":
            metadata[message["apiKey"]] = name
        elif kind.startswith("coordinator-"):
            pair = coordinators.setdefault(message["family"], {}).setdefault(message["apiKey"], [None, None])
            pair[kind == "coordinator-value"] = name
    return {
        "kafka": version,
        "apis": dict(sorted(apis.items())),
        "metadata": dict(sorted(metadata.items())),
        "coordinators": {family: dict(sorted(ids.items())) for family, ids in sorted(coordinators.items())},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", default="4.4.0", help="release of Apache Kafka to read")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fetch_jars(arguments.version, folder)
        messages = read_jars(arguments.version, folder)
    lines = [index_of(arguments.version, messages), *messages]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    arguments.output.write_text(text)
    print(f"{arguments.output}: {len(messages)} messages, {len(text)} bytes")


if __name__ == "__main__":
    main()
