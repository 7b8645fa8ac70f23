"""Builds the drivers that are not Python, each with its language's own tool and from its registry.

What is built is kept beside Apache Kafka's jars under a name that holds a digest of its sources, so that a second run only looks. A
tool or a package that cannot be had raises Unavailable, which the card shows.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import apache_kafka

DRIVERS = Path(__file__).parents[1] / "drivers"
BUILD_SECONDS = 1200
JACKSON = ("com.fasterxml.jackson.core", "jackson-databind", "2.18.2")
# Kafka's clients need it for OAUTHBEARER, and leave it to the application.
TOKENS = ("org.bitbucket.b_c", "jose4j", "0.9.6")
SILENT = ("org.slf4j", "slf4j-nop", "1.7.36")


class Unavailable(Exception):
    """The client cannot be had here; the message is the reason in a few words."""


def run(*command: str, cwd: Path, **environment: str) -> None:
    """One step of a build; a download that breaks off is begun again. Its output is only seen when it fails."""
    for _ in range(apache_kafka.FETCHES):
        try:
            done = subprocess.run(
                command,
                cwd=cwd,
                env=os.environ | environment,
                capture_output=True,
                text=True,
                timeout=BUILD_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{Path(command[0]).name} {command[1]} does not end") from None
        if not done.returncode:
            break
    else:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable(f"{Path(command[0]).name} {command[1]} failed: {' / '.join(lines[-3:])[:300]}")


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"no {name} on this machine")
    return found


FAILED: dict[Path, Unavailable] = {}
"""Builds that failed in this run; what needs them again is told so at once."""


def built(name: str, sources: list[Path], build: Callable[[Path], None], *also: str) -> Path:
    """The folder with what `build` makes of the sources; built when there is none for exactly these sources."""
    digest = hashlib.sha256("\0".join(also).encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    target = apache_kafka.home().parent / "card" / f"{name}-{digest.hexdigest()[:12]}"
    if target in FAILED:
        raise FAILED[target]
    with apache_kafka.in_turn("card"):
        if not (target / "complete").exists():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            try:
                build(target)
            except Unavailable as reason:
                FAILED[target] = reason
                raise
            (target / "complete").touch()
    return target


@cache
def java_libraries(*dependencies: tuple[str, str, str]) -> Path:
    """A folder of jars from Maven Central: the dependencies and what they need to run."""

    def build(target: Path) -> None:
        try:
            copy = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={target / 'libs'}")
            apache_kafka.maven(target, list(dependencies), *copy)
        except apache_kafka.KafkaUnavailable as error:
            raise Unavailable(str(error)) from None

    return built("jars", [], build, *map(":".join, dependencies)) / "libs"


@cache
def java_classes(libraries: Path, *names: str) -> Path:
    """The classes of the Java driver's sources of these names, compiled against the jars."""
    sources = [DRIVERS / "java" / f"{name}.java" for name in names]

    def build(target: Path) -> None:
        run(tool("javac"), "-nowarn", "-cp", f"{libraries}/*", "-d", str(target), *map(str, sources), cwd=target)

    return built("java", sources, build, libraries.parent.name)


def java_driver(version: str, *names: str) -> list[str]:
    """The driver on the clients of one release of Apache Kafka."""
    libraries = java_libraries(("org.apache.kafka", "kafka-clients", version), JACKSON, TOKENS, SILENT)
    classes = java_classes(libraries, "JavaDriver", "Producing", "Consuming", "Administering", *names)
    flags = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8")
    return [tool("java"), *flags, "-cp", f"{classes}:{libraries}/*", "JavaDriver"]


@cache
def go_driver(name: str) -> list[str]:
    """One of the drivers of the Go module."""
    folder = DRIVERS / "go"
    sources = [
        folder / "go.mod",
        folder / "go.sum",
        *sorted(folder.glob("loop/*.go")),
        *sorted(folder.glob(f"{name}/*.go")),
    ]

    def build(target: Path) -> None:
        run(tool("go"), "build", "-o", str(target / name), f"./{name}", cwd=folder)

    return [str(built(name, sources, build) / name)]


@cache
def registry_go() -> list[str]:
    """The program on franz-go's client of a schema registry, a module of its own."""
    folder = DRIVERS / "registry_go"
    sources = [folder / name for name in ("go.mod", "go.sum", "main.go")]

    def build(target: Path) -> None:
        run(tool("go"), "build", "-o", str(target / "registry-go"), ".", cwd=folder)

    return [str(built("registry-go", sources, build) / "registry-go")]


@cache
def node_driver(name: str) -> list[str]:
    """A driver for Node.js, with the packages that its lock file names."""
    folder = DRIVERS / name
    sources = [folder / "package.json", folder / "package-lock.json", folder / "driver.js"]

    def build(target: Path) -> None:
        for source in sources:
            shutil.copy(source, target)
        run(tool("npm"), "ci", "--no-audit", "--no-fund", cwd=target)

    return [tool("node"), str(built(name, sources, build) / "driver.js")]


@cache
def rust_driver(name: str, *features: str) -> list[str]:
    """The Rust driver, with the crates that its lock file names; librdkafka itself is compiled with it, and OpenSSL's headers for `tls`."""
    folder = DRIVERS / name
    sources = [folder / "Cargo.toml", folder / "Cargo.lock", folder / "build.rs", *sorted(folder.glob("src/*.rs"))]

    def build(target: Path) -> None:
        objects = target.parent / "-".join(
            ("rust-objects", *features)
        )  # shared by all versions: the crates compile once
        command = ("build", "--release", "--locked", "--target-dir", str(objects), "--features", ",".join(features))
        run(tool("cargo"), *command, cwd=folder)
        shutil.copy(objects / "release" / "rust-driver", target)

    return [str(built("-".join((name, *features)), sources, build) / "rust-driver")]
