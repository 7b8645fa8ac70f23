"""Every message in every version, judged by the release of Apache Kafka that the definitions come from."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import apache_kafka
import pytest
import read_schemas

from barnabas.protocol.messages import message_class
from barnabas.protocol.schema import schema_index
from tests.protocol.samples import ALL_VERSIONS, Sampler

GENERATED = (".common.message.", ".common.metadata.", ".generated.")


def java_classes(jars: list[Path]) -> dict[str, str]:
    """Simple name of each generated class → full name."""
    classes = {}
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                name = entry.removesuffix(".class").replace("/", ".")
                if entry.endswith(".class") and "$" not in entry and any(part in name for part in GENERATED):
                    classes[name.rpartition(".")[2]] = name
    return classes


@pytest.mark.conform
@pytest.mark.skipif(not (shutil.which("mvn") and shutil.which("javac")), reason="needs Maven and a JDK")
def test_kafka_reads_what_we_write_and_writes_the_same(tmp_path: Path) -> None:
    with apache_kafka.in_turn("maven"):
        read_schemas.fetch_jars(schema_index()["kafka"], tmp_path)
    jars = sorted(tmp_path.glob("*.jar"))
    classpath = ":".join([*map(str, jars), str(tmp_path)])
    source = Path(__file__).parent / "Codec.java"
    subprocess.run(["javac", "-cp", classpath, "-d", str(tmp_path), str(source)], check=True)
    classes = java_classes(jars)
    questions, expected = [], []
    for name, version in ALL_VERSIONS:
        data = "Data" if message_class(name).KIND in ("request", "response", "header") else ""
        for seed in range(3):
            encoded = Sampler(f"{name} {version} {seed}").message(name, version).encode(version).hex()
            questions.append(f"{classes[name + data]} {version} {encoded}")
            expected.append(f"0 {encoded}")
    answer = subprocess.run(
        ["java", "-cp", classpath, "Codec"],
        input="\n".join(questions) + "\n",
        text=True,
        capture_output=True,
        check=True,
    )
    wrong = [pair for pair in zip(questions, answer.stdout.splitlines(), expected, strict=True) if pair[1] != pair[2]]
    assert not wrong
