"""What the documents show, as commands to type: the shell blocks of a page, run in order in a temporary folder.

In a page of Markdown a fence of `console`, `sh` or `bash`, and one without a language that begins with a command, is a block. In a
`console` block the commands begin with `$ `, and the other lines are output; in the others each line is a command. Comments in front of
a block speak to this module:

    <!-- not run: REASON -->         the block is not run
    <!-- setup: WORDS -->            the state that the block needs; a function of the test makes it
    <!-- output: in any order -->    the lines of the block's output may have another order (where outputs are compared)
    <!-- output: other numbers -->   the numbers of the block's output differ from run to run

(`tests/typed`, which types the same blocks from the wheel and compares all of them, knows some more.)

`barnabas` runs in this process where it can, which is fast. `barnabas start` is a process of its own on a free port; what follows talks
to it. `verify` and `demo`, which take a minute, `console`, `registry` and `top`, which do not end, are only parsed; of `make` and
`pip install` only what they name is checked, because `tests/packaging` builds and installs. `. .venv/bin/activate` activates the
environment of this run, and must find `barnabas` there. Everything else is a shell's.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from click.testing import CliRunner

from barnabas.main import command_group

_BLOCK = re.compile(
    r"^(?P<comments>(?:<!-- .*? -->\n)*)```(?P<language>.*?)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_COMMENT = re.compile(r"<!-- (not run|setup|output): (.*?) -->")
_DIFFERS = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|/\S+|\b[\w-]{22}\b|127\.0\.0\.1:\d+")
"""What no two runs print alike: times, paths, ids and ports."""
_NOT_OURS = re.compile(r"^(?:\S*bash: line \d+: +\d+ Killed .*|%\d\|\d+\.\d+\|.*)\n", re.MULTILINE)
"""A shell's notice of a program that was killed, and librdkafka's own log."""
_LOCAL = re.compile(r"\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d+)\b")
DEFAULT_PORT = "9092"
_PARSED_ONLY = ("verify", "demo", "console", "registry", "top")
_SHELLS = ("console", "sh", "bash")
_OWN_PROCESS = ("start", "storage")
_PROGRAMS = ("barnabas", "echo", "printf", "make")


@dataclass(frozen=True)
class Block:
    """A shell block of a page.

    Attributes:
        page: its path, from the root of the project.
        commands: to type.
        not_run: why it is not run; None if it is.
        setup: the states that it needs.
        outputs: what the page shows for each command; empty in blocks that are not of a console.
        differs: how an output of the block may differ from the page.
    """

    page: str
    commands: tuple[str, ...]
    not_run: str | None
    setup: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.page}: {self.commands[0]}"


def blocks(page: str, markdown: str) -> list[Block]:
    """Return the shell blocks of a page."""
    found = []
    for match in _BLOCK.finditer(markdown):
        text = match["text"].replace("\\\n", " ")
        lines = text.splitlines()
        outputs: tuple[str, ...] = ()
        if match["language"] == "console":
            outputs = tuple(shown.partition("\n")[2] for shown in f"\n{text}".split("\n$ ")[1:])
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        commands = tuple(line for line in lines if line.strip() and not line.startswith("#"))
        if match["language"] not in ("", *_SHELLS):
            continue
        if not commands or (not match["language"] and commands[0].split()[0] not in _PROGRAMS):
            continue  # output, or another language
        directives = _COMMENT.findall(match["comments"])
        reasons = [words for kind, words in directives if kind == "not run"]
        setup = tuple(words for kind, words in directives if kind == "setup")
        differs = tuple(words for kind, words in directives if kind == "output")
        found.append(Block(page, commands, reasons[0] if reasons else None, setup, outputs, differs))
    return found


def comparable(output: str, differs: tuple[str, ...]) -> list[str]:
    """Return the lines of an output without what differs from run to run."""
    text = _DIFFERS.sub("*", _NOT_OURS.sub("", output))
    if "other numbers" in differs:
        lists = re.compile(r"\d+(?:,\d+)*")  # of nodes: in another order, but of the same nodes
        text = lists.sub(lambda found: ",".join(sorted(found[0].split(","))) if "," in found[0] else "N", text)
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return sorted(lines) if "in any order" in differs else lines


def indented_commands(markdown: str) -> list[str]:
    """Return commands in indented blocks, which nobody runs."""
    return re.findall(r"^    (?:\$ )?(barnabas .*)$", re.sub(r"```.*?```", "", markdown, flags=re.DOTALL), re.MULTILINE)


class Typist:
    """Types commands in a folder, as a reader of the page would.

    Args:
        folder: the working directory, which is also that of this process.
        bootstrap: the broker that commands talk to until a page starts its own.
        root: the folder of the Makefile.
    """

    def __init__(self, folder: Path, bootstrap: str, root: Path) -> None:
        self._folder = folder
        self._bootstrap = bootstrap
        self._root = root
        self._started: list[subprocess.Popen[str]] = []
        self._kept = contextlib.ExitStack()
        self._ports = {DEFAULT_PORT: bootstrap.rpartition(":")[2]}
        self._holders: list[socket.socket] = []

    @property
    def bootstrap(self) -> str:
        return self._bootstrap

    def type(self, line: str) -> str:
        """Type a line; return what it prints.

        Raises:
            AssertionError: a command fails.
        """
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", (self._root / "Makefile").read_text(), re.MULTILINE), line
            return ""
        if words[:2] == ["pip", "install"] and words[2].startswith("./"):
            assert (self._root / words[2] / "pyproject.toml").exists(), line
            return ""
        if words[:2] == ["pip", "install"]:
            found = re.search(
                r' (\.|"(?:\.|\$\(ls dist/barnabas-\*\.whl\))\[(?P<extras>[a-z,]+)\]"|dist/barnabas-\*\.whl)( |$)', line
            )
            assert found is not None, line
            extras = tomllib.loads((self._root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            assert set((found["extras"] or "cli").split(",")) <= set(extras), line
            return ""
        if words == [".", ".venv/bin/activate"]:
            (self._folder / ".venv").symlink_to(sys.prefix)
            command = self._shell(f"PATH=/usr/bin:/bin; {line}; command -v barnabas")
            assert command.strip() == os.path.join(sys.prefix, "bin", "barnabas"), command
            return command
        if words[0] == "curl" and shutil.which("curl") is None:
            return ""
        if words[:2] == ["barnabas", "start"]:
            return self._start(words[2:])
        pieces = list(shlex.shlex(line, posix=True, punctuation_chars="|<>&;"))
        if words[0] in ("barnabas", "echo", "printf") and not set(pieces) & {"&", "&&", "||", ";"} and "$(" not in line:
            return self._pipeline(line)
        return self._shell(line)

    def _pipeline(self, line: str) -> str:
        """Run commands joined by `|`, with `<` and `>`, in this process."""
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
        lexer.whitespace_split = True
        words: list[str] = []
        given = b""
        stages = [words]
        sources: dict[str, str] = {}
        tokens = iter(lexer)
        for token in tokens:
            if token == "|":
                words = []
                stages.append(words)
            elif token in ("<", ">"):
                sources[token] = next(tokens)
            else:
                words.append(self._moved(token))
        if "<" in sources:
            given = Path(sources["<"]).read_bytes()
        for stage in stages:
            given = self._run(stage, given, errors=stage is stages[-1] and ">" not in sources)
        if ">" in sources:
            Path(sources[">"]).write_bytes(given)
        return given.decode()

    def _run(self, words: list[str], given: bytes, errors: bool = False) -> bytes:
        """Run a command; return its standard output, and with `errors` what it prints on standard error in its place."""
        if words[0] != "barnabas":
            return subprocess.run(words, input=given, stdout=subprocess.PIPE, check=True).stdout
        if words[1] in _OWN_PROCESS:
            return self._shell(shlex.join(words)).encode()
        group = command_group()
        if words[1] in _PARSED_ONLY and "--check" not in words:
            with click.Context(group) as context:
                _, command, rest = group.resolve_command(context, words[1:])
                assert command is not None
                command.make_context(words[1], rest)
            return b""
        result = CliRunner().invoke(group, words[1:], input=given, env=self._environment(), prog_name="barnabas")
        assert result.exit_code == 0, f"$ {shlex.join(words)}\n{result.output}{result.exception!r}"
        return result.output_bytes if errors else result.stdout_bytes

    def _shell(self, line: str) -> str:
        line = self._moved(line)
        command = ["/bin/bash", "-ec", line]
        done = subprocess.run(
            command, cwd=self._folder, env=os.environ | self._environment(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"$ {line}\n{done.stdout}"
        return done.stdout

    def _environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {"BARNABAS_BOOTSTRAP_SERVERS": self._bootstrap, "PATH": path}

    def _start(self, words: list[str]) -> str:
        """Start a broker; its ports are free ones, and stand for those of the page from then on."""
        listens = "--listen" in words
        for given in _LOCAL.findall(" ".join(words)) + ([] if listens else [DEFAULT_PORT]):
            self._ports[given] = self._held_port() if given != "0" else "0"
        command = [sys.executable, "-m", "barnabas", "start", *map(self._moved, words)]
        if "--nodes" in words:
            command += ["--port", "0"]
        elif not listens:
            command += ["--listen", f"127.0.0.1:{self._ports[DEFAULT_PORT]}"]
        log = self._folder / f"start-{len(self._started)}.log"
        with log.open("w") as errors:
            process = subprocess.Popen(command, cwd=self._folder, stdout=subprocess.PIPE, stderr=errors, text=True)
        self._started.append(process)
        assert process.stdout is not None
        # Before a cluster is ready, it prints a line for each node.
        printed = ""
        for line in process.stdout:
            printed += line
            if found := re.search(r"ready on (\S+)", line):
                self._bootstrap = found[1]
                return printed
        raise AssertionError(log.read_text())

    def _held_port(self) -> str:
        """Return a free port that no other process gets: a socket that does not listen holds it, and the broker may share it."""
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        self._holders.append(holder)
        return str(holder.getsockname()[1])

    def _moved(self, text: str) -> str:
        """Return a text of the page with the ports that are used instead."""
        return _LOCAL.sub(lambda match: f"127.0.0.1:{self._ports.get(match[1], match[1])}", text)

    def keep(self, client: object) -> None:
        """Keep a client until the end of the page: without a reference it would end."""
        self._kept.callback(lambda: client)

    def serve(self, port: str, server: contextlib.AbstractContextManager[str]) -> None:
        """Run a server until the end of the page, in whose place the page has a port of this machine.

        Args:
            server: yields its address.
        """
        self._ports[port] = self._kept.enter_context(server).rpartition(":")[2]

    def stop(self, bootstrap: str | None = None) -> None:
        """Stop the brokers that the page started, and return to another one."""
        self._kept.close()
        for process in self._started:
            process.terminate()
            process.communicate()
        self._started.clear()
        for holder in self._holders:
            holder.close()
        self._holders.clear()
        self._bootstrap = bootstrap or self._bootstrap
        self._ports = {DEFAULT_PORT: self._bootstrap.rpartition(":")[2]}


@contextlib.contextmanager
def typist(folder: Path, bootstrap: str, root: Path) -> Iterator[Typist]:
    """Yield a typist in a folder; afterwards stop what was started, and go back."""
    before = Path.cwd()
    os.chdir(folder)
    typing = Typist(folder, bootstrap, root)
    try:
        yield typing
    finally:
        typing.stop()
        os.chdir(before)
