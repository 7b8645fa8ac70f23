"""Spark's own Kafka connector, from its published jars.

Four jars suffice: the connector, its token provider, the Kafka client and a pool. They are fetched with Maven into
`$BARNABAS_SPARK_CONNECTOR_HOME`, or `~/.cache/barnabas/spark-connector`, once. The connector is of the newest release
that is published in full; newer Sparks run it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import apache_kafka

CONNECTOR_VERSION = "4.2.0"
_JARS = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": CONNECTOR_VERSION,
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": "4.1.0-preview1",
    "org.apache.kafka:kafka-clients": "3.9.2",
    "org.apache.commons:commons-pool2": "2.13.1",
}
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
# Spark's parent pom names another repository first; whatever a machine's settings say, Maven Central has these.
_SETTINGS = """<settings><mirrors><mirror><id>central-only</id><mirrorOf>*</mirrorOf>
<url>https://repo.maven.apache.org/maven2</url></mirror></mirrors></settings>"""


class ConnectorUnavailable(Exception):
    """The jars are not here and cannot be fetched; the message says why."""


def connector_jars() -> list[Path]:
    """Return the jars, fetching them if need be.

    Raises:
        ConnectorUnavailable: there is no Maven, or it cannot fetch them.
    """
    with apache_kafka.in_turn("maven"):
        jars = sorted(_home().glob("*.jar"))
        return jars if len(jars) == len(_JARS) else _fetched()


def _fetched() -> list[Path]:
    home = _home()
    maven = shutil.which("mvn")
    if maven is None:
        raise ConnectorUnavailable("Spark's Kafka connector is not here, and there is no Maven to fetch it")
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder) / "pom.xml"
        pom.write_text(_pom())
        command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={home}"]
        if not (Path.home() / ".m2" / "settings.xml").exists():
            settings = Path(folder) / "settings.xml"
            settings.write_text(_SETTINGS)
            command += ["-s", str(settings)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        except subprocess.TimeoutExpired:
            raise ConnectorUnavailable("Spark's Kafka connector cannot be fetched: Maven takes too long") from None
    jars = sorted(home.glob("*.jar"))
    if len(jars) != len(_JARS):
        raise ConnectorUnavailable(f"Spark's Kafka connector cannot be fetched: {done.stdout[-500:]}")
    return jars


def _home() -> Path:
    given = os.environ.get("BARNABAS_SPARK_CONNECTOR_HOME")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else cache / "barnabas" / "spark-connector"


def _pom() -> str:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"{_ALONE}</dependency>"
        for (group, artifact), version in ((name.split(":"), version) for name, version in _JARS.items())
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>connector</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )
