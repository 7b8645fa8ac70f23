"""A program of Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import apache_kafka

from tests.cluster.program import Program


class JavaProgram(Program):
    """Runs one class in a JVM.

    Args:
        name: of its files.
        main_class: with its package.
        folder: for what it prints.
    """

    heap = "256m"

    def __init__(self, name: str, main_class: str, folder: Path, *args: str) -> None:
        super().__init__(name, self._java(main_class, *args), folder)

    def _java(self, *command: str) -> list[str]:
        """Return the command of a JVM that starts quickly."""
        log4j = f"-Dlog4j2.configurationFile={apache_kafka.home() / 'tools-log4j2.properties'}"
        flags = (f"-Xmx{self.heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", log4j)
        return ["java", *flags, "-cp", self.class_path(), *command]

    def class_path(self) -> str:
        return apache_kafka.classpath()


class TalkingProgram(JavaProgram):
    """A program whose lines are no events.

    Attributes:
        lines: that it printed.
    """

    def __init__(self, name: str, main_class: str, folder: Path, *args: str) -> None:
        super().__init__(name, main_class, folder, *args)
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def has_said(self, what: str, *, since: int = 0) -> bool:
        """Return whether one of its lines has these words, from the line with this number on."""
        return any(what in each for each in self.lines[since:])
