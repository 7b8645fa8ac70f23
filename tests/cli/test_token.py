"""`barnabas token`: what is printed, where an HMAC comes from, and that no error has it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from barnabas.cli.session import Session
from barnabas.client.delegation_tokens import DelegationToken
from barnabas.main import command_group
from barnabas.protocol.errors import ErrorCode, error_for
from barnabas.security.principal import Principal

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
HMAC = b"the hmac of a token"
TEXT = base64.b64encode(HMAC).decode()
TOKEN = DelegationToken("JEXY6aqz", HMAC, ALICE, BOB, (BOB,), 0, 86_400_000, 1 << 62)
HEADER = ["TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE"]
DAY = "1970-01-02T00:00:00.000Z"


class Tokens:
    """An administrative client with one token, which notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.error: ErrorCode | None = None

    def __enter__(self) -> Tokens:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _note(self, *asked: object) -> None:
        self.asked.append(asked)
        if self.error is not None:
            raise error_for(self.error, None)

    def create_token(
        self, *, renewers: Sequence[Principal], owner: Principal | None, max_lifetime_ms: int
    ) -> DelegationToken:
        self._note("create", list(renewers), owner, max_lifetime_ms)
        return TOKEN

    def renew_token(self, hmac: bytes, *, period_ms: int) -> int:
        self._note("renew", hmac, period_ms)
        return TOKEN.expires_ms

    def expire_token(self, hmac: bytes, *, period_ms: int) -> int:
        self._note("expire", hmac, period_ms)
        return TOKEN.expires_ms

    def describe_tokens(self, owners: Sequence[Principal] | None) -> list[DelegationToken]:
        self._note("describe", owners)
        return [TOKEN]


@pytest.fixture
def tokens() -> Tokens:
    return Tokens()


def run(tokens: Tokens, *arguments: str, given: str = "", hmac: str | None = None) -> Result:
    with mock.patch.object(Session, "admin", return_value=tokens):
        return CliRunner(env={"BARNABAS_TOKEN_HMAC": hmac}).invoke(
            command_group(), ("token", *arguments), input=given, prog_name="barnabas"
        )


def test_a_created_token_is_printed_with_its_hmac(tokens: Tokens) -> None:
    renewers = ("--renewer-principal", "User:bob", "--renewer-principal", "User:alice")
    result = run(tokens, "create", *renewers, "--owner-principal", "User:alice", "--max-life-time-period", "5")
    row = ["JEXY6aqz", TEXT, "User:alice", "User:bob", "User:bob", "1970-01-01T00:00:00.000Z", DAY, str(1 << 62)]
    assert result.output.split() == HEADER + row
    assert tokens.asked == [("create", [BOB, ALICE], ALICE, 5)]


def test_the_same_in_json(tokens: Tokens) -> None:
    (found,) = json.loads(run(tokens, "create", "-o", "json").output)
    assert (found["tokenid"], found["hmac"], found["renewers"]) == ("JEXY6aqz", TEXT, ["User:bob"])
    assert tokens.asked == [("create", [], None, -1)]


def test_a_dry_run_creates_nothing(tokens: Tokens) -> None:
    result = run(tokens, "create", "--dry-run", "--renewer-principal", "User:bob")
    assert "would be created" in result.output
    assert tokens.asked == [("describe", [])]
    tokens.error = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert run(tokens, "create", "--dry-run").exit_code == 1


def test_the_hmac_is_the_first_line_of_the_input(tokens: Tokens) -> None:
    assert run(tokens, "renew", given=f"{TEXT}\nmore\n").output.split() == ["STATUS", "EXPIRYDATE", "renewed", DAY]
    assert run(tokens, "expire", given=f"{TEXT}\n").output.split() == ["STATUS", "EXPIRYDATE", "expired", DAY]
    assert tokens.asked == [("renew", HMAC, -1), ("expire", HMAC, -1)]


def test_the_environment_goes_before_the_input(tokens: Tokens) -> None:
    run(tokens, "renew", "--renew-time-period", "7", given="ignored\n", hmac=TEXT)
    result = run(tokens, "expire", "--expiry-time-period", "8", given="ignored\n", hmac=TEXT)
    assert "expires" in result.output
    assert tokens.asked == [("renew", HMAC, 7), ("expire", HMAC, 8)]


def test_owners_select(tokens: Tokens) -> None:
    assert run(tokens, "describe").output.split()[: len(HEADER)] == HEADER
    run(tokens, "describe", "--owner-principal", "User:alice")
    assert tokens.asked == [("describe", None), ("describe", [ALICE])]


@pytest.mark.parametrize(
    ("command", "given", "line"),
    [
        (("renew",), "", "error: the HMAC is empty (give it by BARNABAS_TOKEN_HMAC or the standard input, as"),
        (("expire",), "hidden!\n", "error: the HMAC is not valid base64 (give it by BARNABAS_TOKEN_HMAC"),
        (("create", "--renewer-principal", "bob"), "", "error: bob is not a principal: write Type:name"),
        (("describe", "--owner-principal", ":"), "", "error: : is not a principal: write Type:name"),
        (("create", "--max-life-time-period", "long"), "", "'long' is not a whole number"),
    ],
)
def test_one_line_says_what_is_wrong(tokens: Tokens, command: tuple[str, ...], given: str, line: str) -> None:
    result = run(tokens, *command, given=given)
    assert result.exit_code != 0
    assert line in " ".join(result.stderr.split())
    assert "hidden" not in result.output + result.stderr
    assert tokens.asked == []


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "delegation.token.secret.key"),
        (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "`barnabas token describe` shows which exist"),
        (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, "only the token's owner and its renewers"),
        (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "not with a token"),
        (ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, "CREATE_TOKENS"),
        (ErrorCode.DELEGATION_TOKEN_EXPIRED, "`barnabas token create` makes a new one"),
        (ErrorCode.INVALID_PRINCIPAL_TYPE, "User:NAME"),
    ],
)
def test_a_brokers_error_has_a_hint(tokens: Tokens, code: ErrorCode, hint: str) -> None:
    tokens.error = code
    result = run(tokens, "expire", hmac=TEXT)
    assert (result.exit_code, result.stdout) == (1, "")
    assert hint in " ".join(result.stderr.split())
    assert TEXT not in result.stderr
