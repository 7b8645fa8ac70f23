"""A terminal in which a page's commands are typed: one shell, whose folder and variables stay, and a terminal for each program that
stays in the foreground.

Such a program (`barnabas start`, `console`, …) runs until another one needs its port, as if Ctrl-C were pressed in its terminal, or until
the page ends. Of it only what it prints on standard output counts, and its log does not; of every other command both do, as on a screen.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_MARK = b"\x1eended "
_LOOK_S = 0.02
FOREGROUND = {
    "start": re.compile(r"ready on (\S+)"),
    "console": re.compile(r"http://"),
    "registry": re.compile(r"http://"),
    "deliver": re.compile(r""),
}
"""The programs that stay in the foreground, with what each prints when it is ready."""
_DEFAULT_PORTS = {"start": 9092, "console": 8080, "registry": 8081}


class Failed(Exception):
    """A command ended with an error, or did not end."""


@dataclass(frozen=True)
class Running:
    """A program in a terminal of its own."""

    command: str
    pid: int
    ports: frozenset[int]


def ports_of(command: str) -> frozenset[int]:
    """Return the ports that a program of the foreground listens on."""
    ports = {int(port) for port in re.findall(r"--(?:metrics-)?(?:listen|faults)[ =]\S*?:(\d+)", command)}
    kind = command.split()[1]
    if not re.search(r"--listen\b", command) and kind in _DEFAULT_PORTS:
        nodes = int(found[1]) if (found := re.search(r"--nodes[ =](\d+)", command)) else 1
        ports |= set(range(_DEFAULT_PORTS[kind], _DEFAULT_PORTS[kind] + nodes))
    return frozenset(ports)


def stays(command: str) -> bool:
    """Return whether a command stays in the foreground until somebody stops it."""
    words = command.split()
    return words[0] == "barnabas" and len(words) > 1 and words[1] in FOREGROUND and "--add-user" not in words


class Terminal:
    """Types commands in a folder.

    Args:
        folder: where the shell begins.
        logs: where the programs of the foreground print.
        environment: the shell's variables.
        timeout_s: how long a command may take.
    """

    def __init__(self, folder: Path, logs: Path, environment: Mapping[str, str], timeout_s: float = 240) -> None:
        self._logs = logs
        self._timeout_s = timeout_s
        self._running: list[Running] = []
        self._kept = contextlib.ExitStack()
        self._count = 0
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], cwd=folder, env=dict(environment),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self.bootstrap = "localhost:9092"

    def __repr__(self) -> str:
        return f"<Terminal running={len(self._running)}>"

    def type(self, command: str) -> str:
        """Type a command; return what it prints.

        Raises:
            Failed: it ends with an exit code that is not 0, or does not end, or does not become ready.
        """
        if stays(command):
            return self._start(command)
        output, status = self._typed(command)
        if status != 0:
            raise Failed(f"exit code {status}\n{output}")
        return output

    def _typed(self, command: str) -> tuple[str, int]:
        """Let the shell run a command; return what it prints, and its exit code."""
        script = self._logs / "typed.sh"
        script.write_text(command)
        stdin, stdout = self._shell.stdin, self._shell.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"eval \"$(cat '{script}')\" </dev/null; printf '\\x1eended %s\\n' $?\n".encode())
        stdin.flush()
        printed = self._read(stdout, command)
        output, _, status = printed.rpartition(_MARK)
        return output.decode(), int(status)

    def _read(self, stdout: IO[bytes], command: str) -> bytes:
        until = time.monotonic() + self._timeout_s
        printed = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not re.search(_MARK + rb"\d+\n$", printed):
                if not selector.select(max(0, until - time.monotonic())):
                    raise Failed(f"did not end within {self._timeout_s:g} s\n{printed.decode()}")
                read = os.read(stdout.fileno(), 1 << 16)
                if not read:
                    raise Failed(f"the shell ended: {command}\n{printed.decode()}")
                printed += read
        return printed

    def _start(self, command: str) -> str:
        ports = ports_of(command)
        for running in [each for each in self._running if each.ports & ports]:
            self._end(running)
        self._count += 1
        output, errors = (self._logs / f"{self._count}.{kind}" for kind in ("out", "err"))
        begun, _ = self._typed(
            f"exec_it() {{ exec {command}\n}}; exec_it </dev/null >'{output}' 2>'{errors}' & echo $!"
        )
        running = Running(command, int(begun), ports)
        self._running.append(running)
        ready = FOREGROUND[command.split()[1]]
        until = time.monotonic() + self._timeout_s
        while not (output.exists() and ready.search(output.read_text())):
            state = Path(f"/proc/{running.pid}/stat")
            if time.monotonic() > until or not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
                raise Failed(f"did not become ready\n{output.read_text()}{errors.read_text()}")
            time.sleep(_LOOK_S)
        return output.read_text()

    def _end(self, running: Running) -> None:
        self._typed(f"kill {running.pid}; wait {running.pid}")
        self._running.remove(running)

    def keep(self, client: object) -> None:
        """Keep a client until the end of the page: without a reference it would end."""
        self._kept.callback(lambda: client)

    def serve(self, port: str, server: contextlib.AbstractContextManager[str]) -> None:
        """Run a server until the end of the page, reached at a port of this machine.

        Args:
            server: yields its address.
        """
        host, _, other = self._kept.enter_context(server).rpartition(":")
        forward(int(port), (host.rpartition("/")[2], int(other)))

    def stop(self, bootstrap: str | None = None) -> None:
        """Stop what runs in the foreground."""
        for running in list(self._running):
            self._end(running)

    def close(self) -> None:
        """Stop everything, and close the shell."""
        self._kept.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate()


def forward(port: int, target: tuple[str, int]) -> None:
    """Pass on the connections to a port of this machine, until this process ends."""
    listener = socket.create_server(("127.0.0.1", port))

    def copy(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while read := source.recv(1 << 16):
                sink.sendall(read)
            sink.shutdown(socket.SHUT_WR)

    def accept() -> None:
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(target)
            threading.Thread(target=copy, args=(client, server), daemon=True).start()
            threading.Thread(target=copy, args=(server, client), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
