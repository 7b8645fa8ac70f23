"""Say in one line what to install when Java is missing or too old: `python tools/check_java.py 17`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys


def java_major(version_output: str) -> int | None:
    """The major version in what `java -version` prints; old releases call 8 "1.8"."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', version_output)
    if not found:
        return None
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def complaint(wanted: int) -> str | None:
    """One line naming what to install, or None when the Java on PATH is new enough."""
    advice = f"install a Java {wanted} (Debian and Ubuntu: apt-get install openjdk-{wanted}-jdk-headless) and try again"
    java = shutil.which("java")
    if java is None:
        return f"Java {wanted} or newer is needed by Spark and is not on PATH: {advice}"
    result = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    major = java_major(result.stderr + result.stdout)
    if major is None or major < wanted:
        return f"Java {wanted} or newer is needed by Spark; {java} is {major or 'of an unknown version'}: {advice}"
    return None


if __name__ == "__main__":
    sys.exit(complaint(int(sys.argv[1])))
