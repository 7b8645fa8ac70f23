"""Refresh `src/barnabas/settings.tsv` from Kafka's own classes.

    python tools/read_configs.py [--version 4.4.0] [--print]

Fetches the published jars with Maven, runs `ReadConfigs.java` over them, and rewrites the facts of each setting: type,
importance, default, update mode, synonyms, bounds. Our sentences and our own settings are kept; a setting that Kafka has
dropped is dropped, a new one comes without a sentence, which a test then asks for. `--print` only shows the differences.
Needs Java 17 and Maven.
"""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

from apache_kafka import GROUP, KafkaUnavailable, maven

HERE = Path(__file__).parent
TABLE = HERE.parent / "src" / "barnabas" / "settings.tsv"
ARTIFACTS = (
    "kafka-clients",
    "kafka-server",
    "kafka-server-common",
    "kafka-storage",
    "kafka-raft",
    "kafka-group-coordinator",
    "kafka-transaction-coordinator",
    "kafka-share-coordinator",
)
COLUMNS = [
    "scope",
    "name",
    "type",
    "importance",
    "default",
    "dynamic",
    "internal",
    "synonyms",
    "valid",
    "documentation",
]
# Settings that this project adds, and settings that are listed only once somebody has set them.
OWN = ("cluster.id", "barnabas.", "unclean.recovery.")
LISTED_WHEN_SET = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


def read_facts(version: str) -> list[list[str]]:
    """One row per setting, without its sentence, in the order of Kafka's definitions."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        listed = [(GROUP, artifact, version) for artifact in ARTIFACTS]
        listed.append(("org.slf4j", "slf4j-nop", "1.7.36"))
        goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={scratch / 'libs'}")
        maven(scratch, listed, *goal)
        command = ["java", "-cp", f"{scratch / 'libs'}/*", str(HERE / "ReadConfigs.java")]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    for row in rows:
        if row[1] in LISTED_WHEN_SET:
            row[6] = "internal"
    return rows


def merge(facts: list[list[str]], table: str) -> str:
    """New facts, old sentences."""
    old = [line.split("\t") for line in table.splitlines()[1:]]
    sentences = {(row[0], row[1]): row[9] for row in old}
    rows = [[*row, sentences.get((row[0], row[1]), "")] for row in facts]
    rows += [row for row in old if row[1].startswith(OWN)]
    return "\n".join(["#" + "\t".join(COLUMNS), *("\t".join(row) for row in rows)]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Refresh the table of settings from Kafka's published classes.")
    parser.add_argument("--version", default="4.4.0", help="Kafka's version")
    parser.add_argument("--print", action="store_true", dest="only_print", help="show differences, write nothing")
    options = parser.parse_args()
    before = TABLE.read_text(encoding="utf-8")
    try:
        after = merge(read_facts(options.version), before)
    except KafkaUnavailable as error:
        sys.exit(str(error))
    if options.only_print:
        sys.stdout.writelines(
            difflib.unified_diff(before.splitlines(True), after.splitlines(True), "now", "Kafka", n=0)
        )
    else:
        TABLE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
