"""`barnabas user`: where a password comes from, and that no output has it."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from barnabas.cli.session import Session
from barnabas.client.scram_users import ScramUser
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.security.sasl.scram_keys import ScramMechanism


class Users:
    """An administrative client with two users, which notes what it is asked to change."""

    def __init__(self) -> None:
        self.changes: list[Any] = []
        self.error: KafkaError | None = None

    def __enter__(self) -> Users:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def list_users(self) -> list[ScramUser]:
        return [
            ScramUser("alice", "SCRAM-SHA-256", 4096),
            ScramUser("alice", "SCRAM-SHA-512", 8192),
            ScramUser("bob", "SCRAM-SHA-512", 4096),
        ]

    def set_password(
        self, name: str, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
    ) -> KafkaError | None:
        assert salt
        self.changes.append((name, mechanism.label, password, iterations))
        return self.error

    def delete_password(self, name: str, mechanism: ScramMechanism) -> KafkaError | None:
        self.changes.append((name, mechanism.label))
        return self.error


@pytest.fixture
def users() -> Users:
    return Users()


def run(users: Users, *arguments: str, given: str = "", password: str | None = None) -> Result:
    with mock.patch.object(Session, "admin", return_value=users):
        return CliRunner(env={"BARNABAS_USER_PASSWORD": password}).invoke(
            command_group(), ("user", *arguments), input=given, prog_name="barnabas"
        )


def test_a_user_is_created_with_the_first_line_of_the_input(users: Users) -> None:
    result = run(users, "create", "carol", given="a secret \r\nmore\n")
    assert result.output.split() == [
        "USER",
        "MECHANISM",
        "ITERATIONS",
        "STATUS",
        "carol",
        "SCRAM-SHA-512",
        "4096",
        "created",
    ]
    assert users.changes == [("carol", "SCRAM-SHA-512", "a secret ", 4096)]


def test_the_environment_goes_before_the_input(users: Users) -> None:
    both = ("--mechanism", "SCRAM-SHA-512", "--mechanism", "SCRAM-SHA-256", "--iterations", "5000")
    result = run(users, "create", "carol", *both, given="ignored\n", password="ßecret")
    assert result.exit_code == 0
    assert users.changes == [("carol", "SCRAM-SHA-256", "ßecret", 5000), ("carol", "SCRAM-SHA-512", "ßecret", 5000)]


def test_a_new_password_is_for_each_mechanism(users: Users) -> None:
    result = run(users, "password", "alice", given="new\n")
    assert "changed" in result.output
    assert users.changes == [("alice", "SCRAM-SHA-256", "new", 4096), ("alice", "SCRAM-SHA-512", "new", 8192)]


def test_a_terminal_is_asked_twice_and_shows_nothing(users: Users) -> None:
    with (
        mock.patch("barnabas.given_secret.getpass", return_value="typed") as prompt,
        mock.patch("barnabas.given_secret.sys") as system,
    ):
        system.stdin.isatty.return_value = True
        result = run(users, "password", "bob")
    assert (result.exit_code, prompt.call_count) == (0, 2)
    assert "typed" not in result.output
    assert users.changes == [("bob", "SCRAM-SHA-512", "typed", 4096)]


def test_deletion(users: Users) -> None:
    assert "deleted" in run(users, "delete", "alice").output
    assert users.changes == [("alice", "SCRAM-SHA-256"), ("alice", "SCRAM-SHA-512")]


@pytest.mark.parametrize("command", [("create", "carol"), ("password", "alice"), ("delete", "alice")])
def test_a_dry_run_changes_nothing_and_asks_for_nothing(users: Users, command: tuple[str, ...]) -> None:
    result = run(users, *command, "--dry-run")
    assert (result.exit_code, users.changes) == (0, [])
    assert "would be" in result.output


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            ("create", "bob"),
            "error: user bob exists with SCRAM-SHA-512 (`barnabas user password bob` changes the password)\n",
        ),
        (("create", "ünïcode"), "a user of SCRAM has a name of ASCII characters"),
        (("create", "carol", "--iterations", "4095"), "4095 is not from 4096 to 16384"),
        (("create", "carol"), "error: the password is empty"),
        (
            ("password", "alcie"),
            "error: user alcie does not exist; did you mean alice? (`barnabas user list` shows which exist)\n",
        ),
        (("delete", "zoe"), "error: user zoe does not exist (`barnabas user list` shows which exist)\n"),
    ],
)
def test_one_line_says_what_is_wrong(users: Users, command: tuple[str, ...], line: str) -> None:
    result = run(users, *command)
    assert result.exit_code != 0
    assert line in result.stderr
    assert users.changes == []


def test_a_brokers_error_is_one_line_without_the_password(users: Users) -> None:
    users.error = error_for(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    result = run(users, "create", "carol", given="hidden\n")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "hidden" not in result.output
