"""`barnabas profile`, and commands that use one."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from barnabas.cli.profiles import profiles_path
from barnabas.main import command_group

NOWHERE = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("BARNABAS_PROFILE", "BARNABAS_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(line: str, **environment: str) -> Result:
    return CliRunner().invoke(command_group(), shlex.split(line), env=environment, prog_name="barnabas")


def test_from_the_first_to_the_last(folder: Path) -> None:
    path = folder / "barnabas" / "profiles.toml"
    settings = folder / "client.properties"
    settings.write_text("bootstrap.servers=127.0.0.1:2\nrequest.timeout.ms=900\n")
    assert run("profile list").output == "PROFILE  DEFAULT  BOOTSTRAP-SERVER  COMMAND-CONFIG  TIMEOUT-MS\n"
    assert run(f"profile add local -b {NOWHERE}").output == f"profile local is in {path}\n"
    added = run(f"profile add other --command-config {settings} --timeout-ms 50 --use")
    assert added.output == f"profile other is in {path}, and is the default\n"
    assert json.loads(run("profile list -o json").output) == [
        {"profile": "local", "default": None, "bootstrap_server": NOWHERE, "command_config": None, "timeout_ms": None},
        {
            "profile": "other",
            "default": "yes",
            "bootstrap_server": None,
            "command_config": str(settings),
            "timeout_ms": 50,
        },
    ]
    assert "cannot reach 127.0.0.1:2" in run("topic list").stderr
    assert f"cannot reach {NOWHERE}" in run("topic list --profile local").stderr
    assert f"cannot reach {NOWHERE}" in run("topic list", BARNABAS_PROFILE="local").stderr
    assert "cannot reach 127.0.0.1:3" in run("topic list -b 127.0.0.1:3").stderr
    assert "cannot reach 127.0.0.1:3" in run("topic list", BARNABAS_BOOTSTRAP_SERVERS="127.0.0.1:3").stderr
    assert json.loads(run("profile show -o json").output)["chosen_by"] == "default"
    assert json.loads(run("profile show local -o json").output)["profile"] == "local"
    assert run("profile remove other").output == "profile other is removed, and there is no default\n"
    assert settings.exists()
    assert run("profile use local").output == "profile local is the default\n"
    assert run("profile use --none").output == "there is no default profile\n"
    assert run("profile show").stderr == ("error: no profile is in use (`barnabas profile use NAME` chooses one)\n")


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("profile add local -b a:1", 1, "profile local exists (`barnabas profile remove local` removes it)"),
        ("profile add other", 2, "a profile needs an address"),
        ("profile add other -b a:b:c", 2, "--bootstrap-server: 'a:b:c' is not a valid broker address"),
        ("profile add 'a\nb' -b a:1", 2, "is not a valid name"),
        ("profile use locl", 1, "profile locl does not exist; did you mean local?"),
        ("profile use", 2, "write a NAME or --none"),
        ("profile remove other", 1, "profile other does not exist"),
        ("topic list --profile other", 1, "profile other does not exist"),
        ("topic list --profile local -b a:1", 2, "leave out --bootstrap-server and --command-config"),
    ],
)
def test_wrong_input_is_one_line(line: str, code: int, words: str, folder: Path) -> None:
    run(f"profile add local -b {NOWHERE}")
    before = profiles_path({"XDG_CONFIG_HOME": str(folder)}).read_text()
    result = run(line)
    assert (result.exit_code, words in result.stderr) == (code, True), result.stderr
    assert profiles_path({"XDG_CONFIG_HOME": str(folder)}).read_text() == before


def test_the_settings_of_the_default_do_not_go_to_another_address(folder: Path) -> None:
    settings = folder / "client.properties"
    settings.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=NONE\n")
    run(f"profile add secured -b {NOWHERE} --command-config {settings} --use")
    assert "sasl.mechanism" in run("topic list").stderr
    assert "cannot reach 127.0.0.1:3" in run("topic list -b 127.0.0.1:3").stderr
