"""Variables in the values of settings: what they bring, what stays as it is, and what is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.client.config_providers import ProviderError, resolved

PACKAGE = "org.apache.kafka.common.config.provider."
PROVIDERS = {
    "config.providers": "file, directory,env",
    "config.providers.file.class": f"{PACKAGE}FileConfigProvider",
    "config.providers.directory.class": f"{PACKAGE}DirectoryConfigProvider",
    "config.providers.env.class": f"{PACKAGE}EnvVarConfigProvider",
}
ENVIRON = {"KAFKA_PASSWORD": "from the environment", "OTHER": "x"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secrets.properties").write_text("user = alice\npass\\:word=${file:x:y} \\u00e9\nempty=\n")
    (tmp_path / "password").write_bytes("über\n".encode())
    (tmp_path / "deeper").mkdir()
    return tmp_path


def value(text: str, **parameters: str) -> str:
    more = {
        f"config.providers.{name.replace('__', '.param.').replace('_', '.')}": given
        for name, given in parameters.items()
    }
    return resolved({**PROVIDERS, **more, "s": text}, ENVIRON).properties["s"]


def test_values_from_everywhere(folder: Path) -> None:
    file = f"{folder}/secrets.properties"
    text = f"u=${{file:{file}:user}} p=${{file:{file}:pass:word}}|${{directory:{folder}:password}}|${{env:KAFKA_PASSWORD}}."
    found = resolved({**PROVIDERS, "s": text, "t": f"${{file:{file}:empty}}"}, ENVIRON)
    assert found.properties["s"] == "u=alice p=${file:x:y} é|über\n|from the environment."
    assert found.properties["t"] == ""
    assert found.values == {"alice", "${file:x:y} é", "über\n", "über", "from the environment"}
    assert "alice" not in repr(found)


@pytest.mark.parametrize(
    "text", ["${x}", "${other:/a:b}", "$file:a:b", "{env:OTHER}", "${env", "a ${} b", "${ENV:OTHER}", "$${OTHER}"]
)
def test_other_text_stays_as_it_is(text: str) -> None:
    """As in Apache Kafka; so does a variable of a provider that nobody has named."""
    assert value(text) == text


def test_without_providers_nothing_is_looked_at() -> None:
    given = {"a": "${env:OTHER}", "config.providers": " , "}
    assert resolved(given, ENVIRON) == (given, frozenset())


def test_the_providers_own_settings_have_no_variables() -> None:
    assert (
        resolved({**PROVIDERS, "config.providers.x.param.y": "${env:OTHER}"}, ENVIRON).properties[
            "config.providers.x.param.y"
        ]
        == "${env:OTHER}"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${file:/no/such:key}", "no such file or directory"),
        ("${file:FOLDER:key}", "is a directory"),
        ("${file:FOLDER/secrets.properties:none}", "the file has no property none"),
        ("${file:key}", "it names no path"),
        ("${directory:/no/such:key}", "the path is not a directory"),
        ("${directory:FOLDER:none}", "the directory has no file none"),
        ("${directory:FOLDER:deeper}", "the directory has no file deeper"),
        ("${directory:FOLDER:deeper/../password}", "the directory has no file"),
        ("${env:NONE}", "the environment has no such variable"),
        ("${env:/x:OTHER}", "an environment variable has no path"),
    ],
)
def test_a_variable_without_a_value_names_the_setting(folder: Path, text: str, why: str) -> None:
    text = text.replace("FOLDER", str(folder))
    with pytest.raises(ProviderError) as caught:
        value(f"before {text} after")
    assert str(caught.value).startswith(f"s: {text}: ")
    assert why in str(caught.value)


def test_paths_that_are_allowed(folder: Path) -> None:
    (folder / "deeper" / "x").write_text("y")
    assert value(f"${{directory:{folder}/deeper:x}}", directory__allowed_paths=f"/tmp, {folder}/deeper/") == "y"
    for path in (str(folder), f"{folder}/deeper/../", f"{folder}/deeper-too", "deeper"):
        with pytest.raises(
            ProviderError, match=r"config\.providers\.directory\.param\.allowed\.paths does not allow this path"
        ):
            value(f"${{directory:{path}:password}}", directory__allowed_paths=f"{folder}/deeper")


def test_variables_that_are_allowed() -> None:
    assert value("${env:OTHER}", env__allowlist_pattern="TH") == "x"
    with pytest.raises(ProviderError, match=r"env\.param\.allowlist\.pattern does not allow this variable"):
        value("${env:OTHER}", env__allowlist_pattern="^KAFKA_")


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"file.class": ""}, "config.providers names file, but config.providers.file.class is not set: use org.apache"),
        (
            {"file.class": "org.example.Vault"},
            "config.providers.file.class=org.example.Vault: barnabas has no such class: use org",
        ),
        ({"env.param.allowlist.pattern": "("}, "config.providers.env.param.allowlist.pattern=(: missing )"),
        (
            {"file.param.allowed.paths": "etc"},
            "config.providers.file.param.allowed.paths: the path etc is not absolute",
        ),
        ({"file.param.allowed.paths": "/no/such"}, "param.allowed.paths: the path /no/such does not exist"),
    ],
)
def test_a_provider_that_cannot_be_used_is_named(parameters: dict[str, str], why: str) -> None:
    given = {**PROVIDERS, **{f"config.providers.{name}": text for name, text in parameters.items()}}
    with pytest.raises(ProviderError) as caught:
        resolved(given, ENVIRON)
    assert why in str(caught.value)
