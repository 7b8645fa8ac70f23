"""Java is installed and new enough, or one line says what to install."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from barnabas.demo.java import JavaMissing, check_java, java_version


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_versions(told, version):
    assert java_version(told) == version


def fake_java(folder: Path, told: str) -> None:
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)


def test_a_java_that_is_new_enough_is_found(tmp_path, monkeypatch):
    fake_java(tmp_path, 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_java() == 17


def test_a_java_that_is_too_old_is_one_line(tmp_path, monkeypatch):
    fake_java(tmp_path, 'openjdk version "11.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        JavaMissing, match=r"Spark needs Java 17, but .* has version 11: install Java 17 or newer"
    ) as caught:
        check_java()
    assert "\n" not in str(caught.value)


def test_a_missing_java_is_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match="Java is not installed: install Java 17 or newer"):
        check_java()


def test_an_empty_java_home_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match="Java is not installed"):
        check_java()
