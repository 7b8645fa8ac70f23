"""`barnabas token`: create, renew, expire, describe. Delegation tokens, as `kafka-delegation-tokens.sh` names them.

The HMAC of a token is its password. `create` and `describe` print it, because that is what they are for; `renew` and `expire` take it from
the environment, from a prompt, or from the first line of the standard input, never from the command line.
"""

from __future__ import annotations

import base64
import binascii

import click

from barnabas.cli.failure import Failure
from barnabas.cli.session import Session, session_options
from barnabas.client.delegation_tokens import CLUSTERS_OWN, DelegationToken
from barnabas.given_secret import given_secret
from barnabas.security.principal import Principal, parse_principal
from barnabas.words.times import format_time_ms

HMAC_VARIABLE = "BARNABAS_TOKEN_HMAC"

_COLUMNS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
_HIDDEN_FIRST = ("REQUESTER", "RENEWERS", "ISSUEDATE", "MAXDATE")
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999; a token may live longer."""


@click.group()
def token() -> None:
    """Delegation tokens: create, renew, expire, describe."""


@token.command()
@click.option("--renewer-principal", "renewers", metavar="TYPE:NAME", multiple=True,
              help="Who may renew and expire it, as its owner may; repeat.")  # fmt: skip
@click.option("--owner-principal", "owner", metavar="TYPE:NAME", help="Whom it is for.  [default: you]")
@click.option("--max-life-time-period", "lifetime_ms", type=int, default=CLUSTERS_OWN, metavar="MS",
              help="How long it may live; the brokers have a limit.  [default: that limit]")  # fmt: skip
@click.option("-d", "--dry-run", is_flag=True, help="Only check whether the cluster has tokens for you.")
@session_options
def create(session: Session, renewers: tuple[str, ...], owner: str | None, lifetime_ms: int, dry_run: bool) -> None:
    """Create a token, and print it with its HMAC. Who has the HMAC logs in as its owner.

    \b
    barnabas token create --renewer-principal User:scheduler
    """
    of, renewing = None if owner is None else _principal(owner), [_principal(each) for each in renewers]
    with session.admin() as admin:
        if dry_run:
            # It selects no token, and fails where one could not be created.
            admin.describe_tokens([])
            row = ("would be created", None, None if of is None else str(of), None, _names(renewing), None, None, None)
            session.output.table(_COLUMNS, [row], hidden_first=_HIDDEN_FIRST)
            return
        made = admin.create_token(renewers=renewing, owner=of, max_lifetime_ms=lifetime_ms)
    session.output.table(_COLUMNS, [_row(made)], hidden_first=_HIDDEN_FIRST)


@token.command()
@click.option("--renew-time-period", "period_ms", type=int, default=CLUSTERS_OWN, metavar="MS",
              help="How long it lives from now on; the brokers have a limit.  [default: that limit]")  # fmt: skip
@session_options
def renew(session: Session, period_ms: int) -> None:
    """Let a token expire later. Its HMAC is asked for, or read from the standard input or BARNABAS_TOKEN_HMAC.

    \b
    barnabas token renew < hmac.txt
    """
    hmac = _hmac()
    with session.admin() as admin:
        expires_ms = admin.renew_token(hmac, period_ms=period_ms)
    session.output.table(("STATUS", "EXPIRYDATE"), [("renewed", _time(expires_ms))])


@token.command()
@click.option("--expiry-time-period", "period_ms", type=int, default=-1, metavar="MS",
              help="How long it lives from now on.  [default: it is removed immediately]")  # fmt: skip
@session_options
def expire(session: Session, period_ms: int) -> None:
    """Remove a token, or let it expire sooner. Its HMAC is read as for `renew`.

    \b
    barnabas token expire < hmac.txt
    """
    hmac = _hmac()
    with session.admin() as admin:
        expires_ms = admin.expire_token(hmac, period_ms=period_ms)
    session.output.table(("STATUS", "EXPIRYDATE"), [("expired" if period_ms < 0 else "expires", _time(expires_ms))])


@token.command()
@click.option("--owner-principal", "owners", metavar="TYPE:NAME", multiple=True,
              help="Only tokens that this one owns, has requested or may renew; repeat.")  # fmt: skip
@session_options
def describe(session: Session, owners: tuple[str, ...]) -> None:
    """Show the tokens that you may see, with their HMACs.

    \b
    barnabas token describe --owner-principal User:alice
    """
    named = [_principal(each) for each in owners] or None
    with session.admin() as admin:
        found = admin.describe_tokens(named)
    session.output.table(_COLUMNS, [_row(each) for each in found], hidden_first=_HIDDEN_FIRST)


def _row(found: DelegationToken) -> tuple[object, ...]:
    return (
        found.token_id,
        base64.b64encode(found.hmac).decode(),
        str(found.owner),
        str(found.requester),
        _names(found.renewers),
        _time(found.issued_ms),
        _time(found.expires_ms),
        _time(found.max_ms),
    )


def _names(principals: list[Principal] | tuple[Principal, ...]) -> list[str]:
    return [str(each) for each in principals]


def _time(milliseconds: int) -> str:
    return format_time_ms(milliseconds) if milliseconds <= _LAST_MS else str(milliseconds)


def _principal(text: str) -> Principal:
    try:
        return parse_principal(text)
    except ValueError:
        raise click.UsageError(f"{text} is not a principal: write Type:name, such as User:alice") from None


def _hmac() -> bytes:
    """Return the HMAC that the user of the command gives.

    Raises:
        Failure: it is empty, or not an HMAC.
    """
    text = given_secret(HMAC_VARIABLE, "HMAC").strip()
    how = f"give it by {HMAC_VARIABLE} or the standard input, as `barnabas token describe` prints it"
    if not text:
        raise Failure("the HMAC is empty", how)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Failure("the HMAC is not valid base64", how) from None
