"""`barnabas console`: what it refuses, and that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.console.password_file import accepts, read_password_file
from barnabas.main import command_group
from barnabas.words.requirements import install_command
from tests.hidden_packages import hide


def run(*words: str, given: str = "") -> Result:
    return CliRunner().invoke(command_group(), ["console", *words], input=given, prog_name="barnabas")


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "192.0.2.1:8080", "console.example:8080", "[::]:0"])
def test_beyond_loopback_it_needs_a_login(listen: str) -> None:
    done = run("--listen", listen)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"error: {listen.rpartition(':')[0].strip('[]')} may be reached from other machines")
    assert "--token-file FILE or --password-file FILE" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--listen", "here"), "--listen: 'here' is not HOST:PORT"),
        (("--base-path", "console"), "--base-path: 'console' is not a path"),
        (("--base-path", "//console"), "--base-path: '//console' is not a path"),
        (("--add-user", "alice"), "--add-user needs --password-file"),
        (("-b", "a", "--config", __file__), "leave out -b"),
        (("--config", __file__), "it is not TOML"),
        (("--token-file", "absent"), "absent: no such file"),
        (("--audit-log", "audit"), "--audit-log needs --write"),
        (("--write", "--audit-log", "absent/audit"), "the audit log absent/audit cannot be written: no such file"),
        (("--schemas", "absent"), "absent has no schemas"),
        (("--schemas", "a", "--config", __file__), "leave out -b, --command-config and --schemas"),
    ],
)
def test_a_wrong_command_line(words: tuple[str, ...], message: str) -> None:
    done = run("--listen", "127.0.0.1:0", *words) if "--listen" not in words else run(*words)
    assert done.exit_code in (1, 2)
    assert message in done.stderr


def test_a_user_is_added_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "users"
    for password in ("the first one", "the second one"):
        done = run("--password-file", str(path), "--add-user", "alice", given=f"{password}\n{password}\n")
        assert done.exit_code == 0, done.output
        assert password not in done.output
    users = read_password_file(str(path))
    assert accepts(users, "alice", "the second one")
    assert not accepts(users, "alice", "the first one")
    assert path.stat().st_mode & 0o077 == 0


def test_a_short_password(tmp_path: Path) -> None:
    done = run("--password-file", str(tmp_path / "users"), "--add-user", "alice", given="short\nshort\n")
    assert (done.exit_code, "at least 8 characters" in done.stderr) == (1, True)
    assert not (tmp_path / "users").exists()


def test_a_missing_extra_is_one_line(tmp_path: Path) -> None:
    hide(tmp_path, "starlette", "uvicorn", "jinja2")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "COLUMNS": "500"}
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", "console", "--listen", "127.0.0.1:0"],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: barnabas console needs starlette ({install_command('console')})\n"


def test_the_broker_imports_none_of_it() -> None:
    packages = ("starlette", "uvicorn", "jinja2", "barnabas.console", "barnabas.cli")
    code = f"import sys, barnabas.node.node, barnabas.process.commands; print([each for each in {packages} if each in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@contextmanager
def started(*words: str) -> Iterator[str]:
    """Start a console; yield its first line, and expect nothing on the standard error."""
    command = [sys.executable, "-m", "barnabas", "console", "--listen", "127.0.0.1:0", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline()
        finally:
            process.terminate()
        process.wait(60)
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_it_starts_and_ends() -> None:
    with started("-b", "127.0.0.1:1", "--base-path", "/k/") as line:
        assert line.startswith("console of 127.0.0.1:1 on http://127.0.0.1:")
        with urllib.request.urlopen(f"{line.split()[-1]}clusters/127.0.0.1%3A1/", timeout=60) as answer:
            assert b"connection refused" in answer.read()


@pytest.mark.slow
@pytest.mark.parametrize(("password", "seen"), [("alice-secret", "orders"), ("another", "Authentication failed")])
def test_it_logs_in_over_tls(tmp_path: Path, password: str, seen: str) -> None:
    read = "--allow-principal User:alice --operation describe --topic orders"
    with barnabas.Broker(security="SASL_SSL", users={"alice": "alice-secret"}, acls=[read]) as broker:
        for topic in ("orders", "salaries"):
            broker.create_topic(topic)
        settings = {
            name: value.replace("alice-secret", password) for name, value in broker.client_settings("alice").items()
        }
        config = tmp_path / "alice.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        with started("-b", broker.bootstrap_servers, "--command-config", str(config)) as line:
            path = f"clusters/{quote(broker.bootstrap_servers)}/topics?format=json"
            with urllib.request.urlopen(f"{line.split()[-1]}{path}", timeout=60) as answer:
                text = answer.read().decode()
    assert seen in text
    assert "salaries" not in text
    assert "-secret" not in text
