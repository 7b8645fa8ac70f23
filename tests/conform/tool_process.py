"""Kafka's command-line tools in one JVM: `drivers/java/Tools.java` behind a call that looks like running a program."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path

import apache_kafka

from tests.conform.card.toolchains import java_classes

# What these leave to the end of their JVM they give to the runtime itself, out of our reach.
IN_A_JVM_OF_THEIR_OWN = {"verifiable-consumer", "verifiable-producer", "verifiable-share-consumer"}


class ToolProcess:
    """Runs one tool after the other; a tool that does not end in time takes its JVM with it, and the next one gets another."""

    def __init__(self, log: Path) -> None:
        libraries = apache_kafka.home() / "libs"
        configured = f"-Dlog4j2.configurationFile={apache_kafka.home() / 'tools-log4j2.properties'}"
        classes = java_classes(libraries, "Tools")
        flags = ["-Xmx512m", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8", configured]
        self.command = ["java", *flags, "-cp", f"{classes}:{libraries}/*", "Tools"]
        self.log = log
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        with open(self.log, "ab") as errors:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8"
            )
        return self.process

    def run(self, tool: str, *args: str, stdin: str | None = None, timeout: float = 300) -> str:
        """Returns the exit code and both streams as one text."""
        if tool in IN_A_JVM_OF_THEIR_OWN:
            done = apache_kafka.run_tool(tool, *args, stdin=stdin, timeout=timeout)
            return f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        process = self.process or self.start()
        assert process.stdin is not None
        process.stdin.write(
            json.dumps({"class": apache_kafka.class_of(tool), "args": args, "stdin": stdin or ""}) + "\n"
        )
        process.stdin.flush()
        answers: queue.Queue[str] = queue.Queue()
        assert process.stdout is not None
        threading.Thread(target=lambda: answers.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
        try:
            line = answers.get(timeout=timeout)
        except queue.Empty:
            self.close()
            return f"no end after {timeout:.0f} s"
        if not line:
            self.close()
            return f"the JVM ended: {self.log.read_text(errors='replace')[-1500:]}"
        answer = json.loads(line)
        return f"exit {answer['exit']}\n{answer['stdout']}\n{answer['stderr']}"

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    pipe.close()
            self.process = None
