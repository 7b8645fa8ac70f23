"""Profiles: clusters with a name, in `$XDG_CONFIG_HOME/barnabas/profiles.toml` (`~/.config` without that variable).

    default = "local"

    [profiles.local]
    bootstrap-server = "localhost:9092"

    [profiles.production]
    bootstrap-server = "kafka1:9092,kafka2:9092"
    command-config = "/home/alice/production.properties"
    timeout-ms = 60000

The file has mode 0600, and no secret: those are in the properties file that a profile names.

A profile is an address and its settings in one. `-b` and `--command-config` take the place of all of it: a password of one cluster must
not reach the address of another. `BARNABAS_BOOTSTRAP_SERVERS` takes the place of the default; with `BARNABAS_PROFILE` it is an error.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from barnabas.cli.failure import Failure
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

PROFILE_VARIABLE = "BARNABAS_PROFILE"
_KINDS: dict[str, type] = {"bootstrap-server": str, "command-config": str, "timeout-ms": int}
_LISTED = "`barnabas profile list` shows which exist"


class ProfileEntry(NamedTuple):
    """A profile in the file; None is a command's default."""

    name: str
    bootstrap: str | None
    command_config: Path | None
    timeout_ms: int | None


class Profile(NamedTuple):
    """A profile that a command uses.

    Attributes:
        why: what chose it, such as `BARNABAS_PROFILE`.
    """

    entry: ProfileEntry
    why: str

    @property
    def name(self) -> str:
        return self.entry.name

    def properties(self, read: Callable[[str], dict[str, str]]) -> dict[str, str]:
        """Return the client's settings.

        Raises:
            Failure: their file does not exist; and what `read` raises.
        """
        path = self.entry.command_config
        if path is not None and not path.is_file():
            raise Failure(
                f"{printable(str(path))}: no such file", f"it is the command-config of profile {printable(self.name)}"
            )
        found = {} if path is None else read(str(path))
        if self.entry.timeout_ms is not None:
            found = {**found, "request.timeout.ms": str(self.entry.timeout_ms)}
        return found

    def bootstrap(self, properties: Mapping[str, str]) -> str:
        """Return the address: its own, or that of its settings.

        Raises:
            Failure: neither has one.
        """
        found = self.entry.bootstrap or properties.get("bootstrap.servers")
        if found is None:
            raise Failure(f"profile {printable(self.name)} has no bootstrap-server")
        return found


class Profiles(NamedTuple):
    """The profiles of the file, in its order."""

    entries: Sequence[ProfileEntry] = ()
    default: str | None = None

    def entry(self, name: str) -> ProfileEntry:
        """Return a profile.

        Raises:
            Failure: it does not exist.
        """
        for each in self.entries:
            if each.name == name:
                return each
        meant = did_you_mean(name, [each.name for each in self.entries])
        raise Failure(f"profile {printable(name)} does not exist{meant}", _LISTED)


def profiles_path(environment: Mapping[str, str]) -> Path:
    """Return where the profiles are."""
    # The specification of XDG ignores a relative path.
    folder = environment.get("XDG_CONFIG_HOME", "")
    return (Path(folder) if os.path.isabs(folder) else Path.home() / ".config") / "barnabas" / "profiles.toml"


def read_profiles(path: Path) -> Profiles:
    """Return the profiles in a file; none if it does not exist.

    Raises:
        Failure: the file cannot be used.
    """
    if not path.exists():
        return Profiles()
    shown = printable(str(path))
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"{shown}: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Failure(f"{shown}: it is not TOML: {printable(str(error))}") from None
    default, found = document.pop("default", None), document.pop("profiles", {})
    if document:
        raise Failure(f"{shown}: unknown table {printable(next(iter(document)))}", "profiles are [profiles.NAME]")
    if not isinstance(default, str | None):
        raise Failure(f"{shown}: default must be a text, the name of a profile")
    if not isinstance(found, dict):
        raise Failure(f"{shown}: write [profiles.NAME] with bootstrap-server")
    return Profiles([_entry(shown, path.parent, name, each) for name, each in found.items()], default)


def _entry(shown: str, folder: Path, name: str, found: Any) -> ProfileEntry:
    where = f"{shown}: profile {printable(name)}"
    if not isinstance(found, dict):
        raise Failure(f"{where}: write [profiles.NAME] with bootstrap-server")
    for key, value in found.items():
        if key not in _KINDS:
            raise Failure(f"{where}: unknown setting {printable(key)}{did_you_mean(key, _KINDS)}")
        if type(value) is not _KINDS[key]:
            raise Failure(f"{where}: {key} must be {'a number' if _KINDS[key] is int else 'a text'}")
    if found.get("timeout-ms", 1) < 1:
        raise Failure(f"{where}: timeout-ms must be at least 1")
    config = found.get("command-config")
    return ProfileEntry(
        name, found.get("bootstrap-server"), None if config is None else folder / config, found.get("timeout-ms")
    )


def write_profiles(path: Path, profiles: Profiles) -> None:
    """Write the profiles, whole or not at all, readable for this user alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(_document(profiles))
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _document(profiles: Profiles) -> str:
    lines = [] if profiles.default is None else [f"default = {_text(profiles.default)}", ""]
    for name, bootstrap, command_config, timeout_ms in profiles.entries:
        lines.append(f"[profiles.{_text(name)}]")
        if bootstrap is not None:
            lines.append(f"bootstrap-server = {_text(bootstrap)}")
        if command_config is not None:
            lines.append(f"command-config = {_text(str(command_config))}")
        if timeout_ms is not None:
            lines.append(f"timeout-ms = {timeout_ms}")
        lines.append("")
    return "\n".join(lines)


def _text(text: str) -> str:
    """Return a basic string of TOML."""
    special = "".join(f"\\{each}" if each in '"\\' else each if each.isprintable() else _escape(each) for each in text)
    return f'"{special}"'


def _escape(character: str) -> str:
    return f"\\U{ord(character):08x}"


def profile_in_use(name: str | None, environment: Mapping[str, str], address_variable: str) -> Profile | None:
    """Return the profile that a command without an address uses; None if the user has chosen no profile.

    Args:
        name: the value of `--profile`.
        address_variable: the environment variable that has an address instead.

    Raises:
        Failure: the profile does not exist, or the file cannot be used.
        UsageError: the environment names a profile and an address.
    """
    if name is not None:
        return Profile(read_profiles(profiles_path(environment)).entry(name), "--profile")
    named = environment.get(PROFILE_VARIABLE)
    is_addressed = address_variable in environment
    if named and is_addressed:
        raise click.UsageError(f"{PROFILE_VARIABLE} and {address_variable} are both set: unset one.")
    if is_addressed:
        return None
    profiles = read_profiles(profiles_path(environment))
    if named:
        return Profile(profiles.entry(named), PROFILE_VARIABLE)
    return None if profiles.default is None else Profile(profiles.entry(profiles.default), "default")


def complete_profiles(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of profiles."""
    try:
        found = read_profiles(profiles_path(os.environ)).entries
    except Failure:
        return []
    return [each.name for each in found if each.name.startswith(incomplete) and each.name.isprintable()]
