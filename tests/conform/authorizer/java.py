"""The Java program that asks Kafka's own `StandardAuthorizer`, from the newest jars that know ranges of addresses."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import apache_kafka
import pytest

__all__ = ["VERSION", "ask", "compile_program"]

VERSION = "4.4.0"
_SOURCE = Path(__file__).parent / "Deciding.java"


def compile_program(target: Path) -> str:
    """Compile the program; returns the class path that runs it."""
    if shutil.which("javac") is None:
        pytest.skip("no javac: install a JDK to ask Kafka's authorizer")
    jars = apache_kafka.library(f"authorizer-{VERSION}", "kafka-metadata", version=VERSION)
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", str(target), str(_SOURCE)], check=True)
    return f"{target}:{jars}"


def ask(classes: str, lines: Iterable[str]) -> list[str]:
    """Return the program's answers to the lines that ask."""
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classes]
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run([*command, "Deciding"], input=text, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()
