"""`barnabas profile`: add, list, use, remove, show. Named clusters (`profiles`); no broker is asked."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from barnabas.cli.failure import Failure
from barnabas.cli.output import OUTPUTS, Table
from barnabas.cli.output_options import output_option
from barnabas.cli.profiles import (
    ProfileEntry,
    Profiles,
    complete_profiles,
    profile_in_use,
    profiles_path,
    read_profiles,
    write_profiles,
)
from barnabas.cli.session import BOOTSTRAP_VARIABLE, bootstrap_option, read_command_config
from barnabas.cli.usage import check_utf8
from barnabas.client.bootstrap import parse_bootstrap
from barnabas.words.printable import printable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@click.group()
def profile() -> None:
    """Named clusters, for --profile: add, list, use, remove, show."""


@profile.command()
@click.argument("name", metavar="NAME")
@bootstrap_option
@click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path),
    help="A client's properties file, as for Kafka's tools; secrets stay in it.",
)
@click.option("--timeout-ms", type=click.IntRange(min=1), help="How long to wait for the cluster.")
@click.option("--use", "is_default", is_flag=True, help="Make it the default.")
def add(
    name: str, bootstrap: str | None, command_config: Path | None, timeout_ms: int | None, is_default: bool
) -> None:
    """Give a cluster a name.

    \b
    barnabas profile add local -b localhost:9092 --use
    """
    check_utf8(click.get_current_context())
    if not _NAME.fullmatch(name):
        raise click.UsageError(f"'{printable(name)}' is not a valid name: use letters, digits, '.', '_' and '-'.")
    if bootstrap is not None:
        try:
            parse_bootstrap(bootstrap)
        except ValueError as error:
            raise click.UsageError(f"--bootstrap-server: {error}") from None
    elif command_config is None or "bootstrap.servers" not in read_command_config(str(command_config)):
        raise click.UsageError("A profile needs an address: -b HOST:PORT, or bootstrap.servers in --command-config.")
    path = profiles_path(os.environ)
    there = read_profiles(path)
    if any(each.name == name for each in there.entries):
        raise Failure(f"profile {name} exists", f"`barnabas profile remove {name}` removes it")
    entries = [*there.entries, ProfileEntry(name, bootstrap, command_config, timeout_ms)]
    write_profiles(path, Profiles(entries, name if is_default else there.default))
    click.echo(f"profile {name} is in {printable(str(path))}{', and is the default' if is_default else ''}")


@profile.command(name="list")
@output_option
def list_(output: str) -> None:
    """List the profiles."""
    profiles = read_profiles(profiles_path(os.environ))
    rows = [
        (name, "yes" if name == profiles.default else None, bootstrap, config and str(config), timeout_ms)
        for name, bootstrap, config, timeout_ms in profiles.entries
    ]
    OUTPUTS[output]().table(("PROFILE", "DEFAULT", "BOOTSTRAP-SERVER", "COMMAND-CONFIG", "TIMEOUT-MS"), rows)


@profile.command()
@click.argument("name", metavar="NAME", required=False, shell_complete=complete_profiles)
@click.option("--none", "is_none", is_flag=True, help="Have no default.")
def use(name: str | None, is_none: bool) -> None:
    """Make a profile the default of every command without an address."""
    if (name is None) != is_none:
        raise click.UsageError("Write a NAME or --none.")
    path = profiles_path(os.environ)
    profiles = read_profiles(path)
    if name is not None:
        profiles.entry(name)
    write_profiles(path, profiles._replace(default=name))
    click.echo("there is no default profile" if name is None else f"profile {printable(name)} is the default")


@profile.command()
@click.argument("name", metavar="NAME", shell_complete=complete_profiles)
def remove(name: str) -> None:
    """Forget a profile. Its --command-config file stays."""
    path = profiles_path(os.environ)
    profiles = read_profiles(path)
    gone = profiles.entry(name)
    was_default = profiles.default == name
    entries = [each for each in profiles.entries if each is not gone]
    write_profiles(path, Profiles(entries, None if was_default else profiles.default))
    click.echo(f"profile {printable(name)} is removed{', and there is no default' if was_default else ''}")


@profile.command()
@click.argument("name", metavar="[NAME]", required=False, shell_complete=complete_profiles)
@output_option
def show(name: str | None, output: str) -> None:
    """Show a profile; without NAME, that of every command now."""
    found = profile_in_use(name, os.environ, BOOTSTRAP_VARIABLE)
    if found is None:
        raise Failure("no profile is in use", "`barnabas profile use NAME` chooses one")
    (_, bootstrap, config, timeout_ms), why = found
    row = (found.name, bootstrap, config and str(config), timeout_ms, None if name is not None else why)
    columns = ("PROFILE", "BOOTSTRAP-SERVER", "COMMAND-CONFIG", "TIMEOUT-MS", "CHOSEN-BY")
    table = Table(columns, [row], vertical=True)
    OUTPUTS[output]().show(table.objects()[0], table)
