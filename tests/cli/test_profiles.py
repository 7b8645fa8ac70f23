"""Profiles in their file, and which of them a command uses."""

from __future__ import annotations

import stat
from pathlib import Path

import click
import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.profiles import (
    Profile,
    ProfileEntry,
    Profiles,
    profile_in_use,
    profiles_path,
    read_profiles,
    write_profiles,
)

LOCAL = ProfileEntry("local", "localhost:9092", None, None)
VARIABLE = "BARNABAS_BOOTSTRAP_SERVERS"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_where_the_file_is(tmp_path: Path) -> None:
    assert profiles_path({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "barnabas" / "profiles.toml"
    home = Path.home() / ".config" / "barnabas" / "profiles.toml"
    assert profiles_path({}) == profiles_path({"XDG_CONFIG_HOME": "relative"}) == home


def test_what_is_written_is_read_again_and_is_for_one_user_alone(environment: dict[str, str]) -> None:
    path = profiles_path(environment)
    assert read_profiles(path) == Profiles()
    strange = ProfileEntry("p", 'a:1,"b\\', Path('/a "quoted"\n\x7f\u202efolder/f\u00fcr.properties'), 7)
    for profiles in (Profiles([LOCAL, strange], "local"), Profiles([strange]), Profiles([])):
        write_profiles(path, profiles)
        assert read_profiles(path) == profiles
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("default = 3", "default must be a text"),
        ("[clusters.a]", "unknown table clusters"),
        ("[profiles.a]\nbootstrap = 1", "profile a: unknown setting bootstrap"),
        ("[profiles.a]\ntimeout-ms = true", "profile a: timeout-ms must be a number"),
        ("[profiles.a]\ntimeout-ms = 0", "timeout-ms must be at least 1"),
        ("[profiles]\na = 1", r"profile a: write \[profiles.NAME\]"),
        ("profiles = 1", r"write \[profiles.NAME\]"),
        ("[", "it is not TOML"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(environment: dict[str, str], document: str, words: str) -> None:
    path = profiles_path(environment)
    path.parent.mkdir()
    path.write_text(document)
    with pytest.raises(Failure, match=words):
        read_profiles(path)


def test_which_profile_a_command_uses(environment: dict[str, str]) -> None:
    assert profile_in_use(None, environment, VARIABLE) is None
    other = LOCAL._replace(name="production")
    write_profiles(profiles_path(environment), Profiles([LOCAL, other], "local"))
    assert profile_in_use(None, environment, VARIABLE) == Profile(LOCAL, "default")
    assert profile_in_use("production", environment, VARIABLE) == Profile(other, "--profile")
    assert profile_in_use(None, {**environment, VARIABLE: "a:1"}, VARIABLE) is None
    named = {**environment, "BARNABAS_PROFILE": "production"}
    assert profile_in_use(None, named, VARIABLE) == Profile(other, "BARNABAS_PROFILE")
    assert profile_in_use("local", {**named, VARIABLE: "a:1"}, VARIABLE) == Profile(LOCAL, "--profile")
    with pytest.raises(click.UsageError, match="BARNABAS_PROFILE and BARNABAS_BOOTSTRAP_SERVERS are both set"):
        profile_in_use(None, {**named, VARIABLE: "a:1"}, VARIABLE)
    with pytest.raises(Failure, match=r"^profile prodction does not exist; did you mean production\?$"):
        profile_in_use("prodction", environment, VARIABLE)


def test_the_settings_and_the_address(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    entry = ProfileEntry("p", None, file, 7)
    with pytest.raises(Failure, match=r"no such file"):
        Profile(entry, "default").properties(lambda path: {})
    file.write_text("")
    found = Profile(entry, "default").properties(lambda path: {"bootstrap.servers": "file:1"})
    assert found == {"bootstrap.servers": "file:1", "request.timeout.ms": "7"}
    assert Profile(entry, "default").bootstrap(found) == "file:1"
    assert Profile(LOCAL, "default").bootstrap(found) == "localhost:9092"
    with pytest.raises(Failure, match="profile p has no bootstrap-server"):
        Profile(entry, "default").bootstrap({})
