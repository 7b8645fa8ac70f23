"""Finds the Java that Spark needs, or names in one line what to install.

The Makefile runs `python -m barnabas.demo.java`, which prints nothing if Java is installed.
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
    """Java is missing or too old for Spark; the message says what to install."""


def check_java() -> int:
    """Return the major version of the Java that Spark will use.

    Raises:
        JavaMissing: Java is missing, does not run or is too old.
    """
    java = _find()
    if java is None:
        raise JavaMissing(f"Spark needs Java, but Java is not installed: {_HOW}")
    try:
        printed = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        raise JavaMissing(f"Spark needs Java, but {java} does not run: {_HOW}") from None
    version = java_version(printed)
    if version is None or version < LEAST_JAVA:
        raise JavaMissing(f"Spark needs Java {LEAST_JAVA}, but {java} has version {version or 'unknown'}: {_HOW}")
    return version


def java_version(printed: str) -> int | None:
    """Return the major version from the output of `java -version`; `1.8.0` is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(match[1]) if match else None


def _find() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        # Spark's launcher uses JAVA_HOME and looks nowhere else, so this does too.
        java = Path(home) / "bin" / "java"
        return str(java) if java.exists() else None
    return shutil.which("java")


if __name__ == "__main__":
    try:
        check_java()
    except JavaMissing as missing:
        sys.exit(str(missing))
