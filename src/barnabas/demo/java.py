"""Finds the Java that Spark needs, or says in one line what to install. Shell.

`python -m barnabas.demo.java` is the same for the Makefile: nothing printed when all is well.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

LEAST_JAVA = 17

_HOW = (
    f"install Java {LEAST_JAVA} or newer (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install "
    "openjdk@17), or set JAVA_HOME to it"
)


class JavaMissing(Exception):
    """There is no Java, or it is too old for Spark; the message names what to install."""


def check_java() -> int:
    """Return the major version of the Java that Spark will use.

    Raises:
        JavaMissing: with one line for the user.
    """
    java = _find()
    if java is None:
        raise JavaMissing(f"Spark needs Java, and there is none: {_HOW}")
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        raise JavaMissing(f"Spark needs Java, and {java} does not run: {_HOW}") from None
    version = java_version(told)
    if version is None or version < LEAST_JAVA:
        raise JavaMissing(f"Spark needs Java {LEAST_JAVA}, and {java} is {version or 'of an unknown version'}: {_HOW}")
    return version


def java_version(told: str) -> int | None:
    """Return the major version in what `java -version` prints; `1.8.0` is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None


def _find() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        # Spark's launcher takes JAVA_HOME without looking further, so neither do we.
        java = Path(home) / "bin" / "java"
        return str(java) if java.exists() else None
    return shutil.which("java")


if __name__ == "__main__":
    try:
        check_java()
    except JavaMissing as missing:
        sys.exit(str(missing))
