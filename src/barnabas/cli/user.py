"""`barnabas user`: list, create, password, delete. Users that log in by SCRAM, as `kafka-configs.sh --entity-type users` sets them.

A password comes from the environment, from a prompt, or from the first line of the standard input; never from the command line, where
other users of the machine could read it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import click

from barnabas.cli.done import Done
from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.output import Found, found_rows
from barnabas.cli.session import Session, session_options
from barnabas.client.admin import Admin
from barnabas.given_secret import given_secret
from barnabas.security.sasl.scram_keys import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism, new_salt
from barnabas.words.nearest import did_you_mean

PASSWORD_VARIABLE = "BARNABAS_USER_PASSWORD"

_LISTED = "`barnabas user list` shows which exist"
_HEADER = ("USER", "MECHANISM", "ITERATIONS", "STATUS")

_dry_run = click.option("-d", "--dry-run", is_flag=True, help="Only check whether it is possible.")


def _iterations(default: int | None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--iterations", type=click.IntRange(MIN_ITERATIONS, MAX_ITERATIONS), default=default, show_default=default is not None,
        help="More make a stolen password harder to guess.",
    )  # fmt: skip


@click.group()
def user() -> None:
    """Users of SCRAM: list, create, password, delete."""


@user.command(name="list")
@session_options
def list_(session: Session) -> None:
    """List users, a line for each mechanism."""
    with session.admin() as admin:
        session.output.show_found(listed_users(admin))


def listed_users(admin: Admin) -> Found:
    """Return users, a row for each mechanism."""
    return found_rows(("USER", "MECHANISM", "ITERATIONS"), admin.list_users())


@user.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--mechanism", "mechanisms", type=click.Choice([one.label for one in ScramMechanism]), multiple=True,
    default=[ScramMechanism.SCRAM_SHA_512.label], show_default=True, help="Where the password is for; repeat.",
)  # fmt: skip
@_iterations(MIN_ITERATIONS)
@_dry_run
@session_options
def create(session: Session, name: str, mechanisms: tuple[str, ...], iterations: int, dry_run: bool) -> None:
    """Create a user. The password is asked for, or read from the standard input or BARNABAS_USER_PASSWORD.

    \b
    barnabas user create alice
    barnabas user create alice --mechanism SCRAM-SHA-256 < password.txt
    """
    with session.admin() as admin:
        wanted = new_mechanisms(admin, name, mechanisms, iterations)
        secret = None if dry_run else _password()
        done = with_password(admin, name, wanted, "created", secret)
    done.show(session.output)


def new_mechanisms(admin: Admin, name: str, mechanisms: Sequence[str], iterations: int) -> dict[str, int]:
    """Return the iterations of each mechanism that a user is to get.

    Raises:
        UsageError: SCRAM does not allow such a name.
        Failure: the user has one of them.
    """
    if not name or not name.isascii() or "\0" in name:
        raise click.UsageError("a user of SCRAM has a name of ASCII characters")
    there = _of(admin, name)
    for mechanism in mechanisms:
        if mechanism in there:
            raise Failure(
                f"user {name} exists with {mechanism}", f"`barnabas user password {name}` changes the password"
            )
    return dict.fromkeys(mechanisms, iterations)


@user.command()
@click.argument("name", metavar="NAME")
@_iterations(None)
@_dry_run
@session_options
def password(session: Session, name: str, iterations: int | None, dry_run: bool) -> None:
    """Change a user's password, for each mechanism that it has. It is read as for `create`.

    \b
    barnabas user password alice
    """
    with session.admin() as admin:
        wanted = {mechanism: iterations or kept for mechanism, kept in mechanisms_of(admin, name).items()}
        secret = None if dry_run else _password()
        done = with_password(admin, name, wanted, "changed", secret)
    done.show(session.output)


@user.command()
@click.argument("name", metavar="NAME")
@_dry_run
@session_options
def delete(session: Session, name: str, dry_run: bool) -> None:
    """Delete a user, with all its mechanisms. Connections that it has stay until they end.

    \b
    barnabas user delete alice
    """
    with session.admin() as admin:
        done = deleted_user(admin, name, dry_run=dry_run)
    done.show(session.output)


def deleted_user(admin: Admin, name: str, *, dry_run: bool) -> Done:
    """Delete a user with all its mechanisms, or only show them.

    Raises:
        Failure: the user does not exist, or the broker rejects it.
    """
    there = mechanisms_of(admin, name)
    for mechanism in _mechanisms(there) if not dry_run else ():
        error = admin.delete_password(name, mechanism)
        if error is not None:
            raise failure_of(error, f"user {name}")
    return Done(found_rows(_HEADER, [(name, *pair, _status("deleted", dry_run)) for pair in there.items()]))


def _of(admin: Admin, name: str) -> dict[str, int]:
    """Return the mechanisms of a user with their iterations."""
    return {each.mechanism: each.iterations for each in admin.list_users() if each.name == name}


def mechanisms_of(admin: Admin, name: str) -> dict[str, int]:
    """Return the mechanisms of a user with their iterations.

    Raises:
        Failure: the user does not exist.
    """
    users = admin.list_users()
    there = {each.mechanism: each.iterations for each in users if each.name == name}
    if not there:
        meant = did_you_mean(name, sorted({each.name for each in users}))
        raise Failure(f"user {name} does not exist{meant}", _LISTED)
    return there


def _mechanisms(names: Mapping[str, int]) -> list[ScramMechanism]:
    return [mechanism for mechanism in ScramMechanism if mechanism.label in names]


def with_password(admin: Admin, name: str, wanted: Mapping[str, int], done: str, secret: str | None) -> Done:
    """Set a user's password for mechanisms.

    Args:
        wanted: the iterations by mechanism.
        done: the word for it.
        secret: the password; None only shows what would be set.

    Raises:
        Failure: the broker rejects it.
    """
    for mechanism in _mechanisms(wanted):
        if secret is not None:
            error = admin.set_password(name, mechanism, secret, new_salt(os.urandom), wanted[mechanism.label])
            if error is not None:
                raise failure_of(error, f"user {name}")
    return Done(found_rows(_HEADER, [(name, *pair, _status(done, secret is None)) for pair in wanted.items()]))


def _status(done: str, dry_run: bool) -> str:
    return f"would be {done}" if dry_run else done


def _password() -> str:
    """Return the password that the user of the command gives.

    Raises:
        Failure: it is empty.
    """
    found = given_secret(PASSWORD_VARIABLE, "Password", is_new=True)
    if not found:
        raise Failure("the password is empty", f"type one, or give one by {PASSWORD_VARIABLE} or the standard input")
    return found
