"""Windows has no `fcntl`, `resource` or uvloop: the client and the command line work there, and a broker is refused in one sentence.

A child process plays Windows: it imports the standard library and the packages as they are here, then says that it is on `win32` and
hides what Windows does not have.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

WINDOWS = """
    import asyncio, ctypes, concurrent.futures, multiprocessing, os, pathlib, shutil, signal, socket, subprocess, tempfile, threading
    import click, confluent_kafka, confluent_kafka.admin, cramjam, crc32c, re2, rich.console, rich.table
    import sys
    hidden = ("fcntl", "resource", "uvloop", "pwd", "grp", "termios", "tty", "pty")
    for name in hidden:
        sys.modules[name] = None
    sys.platform = "win32"
    for name in ("O_DIRECTORY", "O_CLOEXEC", "O_NOFOLLOW", "sendfile", "fork", "killpg", "sysconf", "statvfs", "pread", "pwrite"):
        if hasattr(os, name):
            delattr(os, name)
    del signal.SIGKILL, signal.SIGHUP, socket.MSG_MORE
"""

SENTENCE = "the broker needs Linux or macOS; on Windows the client and the other commands of barnabas work"


def on_windows(code: str) -> subprocess.CompletedProcess[str]:
    program = textwrap.dedent(WINDOWS) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_the_client_and_the_command_line_are_imported() -> None:
    done = on_windows(
        """
        import barnabas, pkgutil
        from importlib import import_module
        import barnabas.main, barnabas.pytest_plugin
        for room in ("client", "cli", "verify", "protocol", "records"):
            for module in pkgutil.walk_packages(import_module("barnabas." + room).__path__, f"barnabas.{room}."):
                import_module(module.name)
        print(*barnabas.__all__)
        for name in barnabas.__all__:
            getattr(barnabas, name)
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "Broker",
        "CannotStart",
        "Cluster",
        "ConfigError",
        "InjectedFault",
        "KafkaError",
        "ObservedRequest",
        "read",
    ]


@pytest.mark.slow
def test_a_broker_is_refused_in_one_sentence() -> None:
    done = on_windows(
        """
        import barnabas
        try:
            barnabas.Broker()
        except barnabas.CannotStart as error:
            print(error)
        """
    )
    assert done.stdout == f"{SENTENCE}\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [["start", "--data-dir", "x"], ["storage", "info"]])
def test_a_command_of_the_broker_is_refused_in_one_sentence(words: list[str]) -> None:
    done = on_windows(f"from barnabas.main import main; main({words})")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(f": {SENTENCE}\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_command_of_a_client_runs() -> None:
    done = on_windows("from barnabas.main import main; main(['topic', 'list', '-b', '127.0.0.1:1'])")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "127.0.0.1:1" in done.stderr
