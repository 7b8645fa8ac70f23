"""What a support bundle leaves out."""

from __future__ import annotations

import json

import pytest

from barnabas.cli.support_secrets import Secrets

SETTINGS = {
    "node.id": "1",
    "retries.of.a.plugin": "1000",
    "ssl.keystore.password": "hunter2-store",
    "listener.name.sasl.ssl.key.password": "hunter2-key",
    "listener.name.sasl_ssl.plain.sasl.jaas.config": 'Login required user="admin" password="hunter2-\\"jaas";',
    "my.plugin.value": "hunter2-plugin",
    "listener.name.internal.max.connections": "7",
}


def test_only_documented_settings_that_are_no_password_are_shown() -> None:
    shown = Secrets().shown(SETTINGS)
    assert {name for name, value in shown.items() if value != "[hidden]"} == {
        "node.id", "listener.name.internal.max.connections",
    }  # fmt: skip
    assert repr(Secrets()) == "<Secrets values=0>"


def test_what_a_setting_hides_is_hidden_elsewhere_and_json_stays_json() -> None:
    secrets = Secrets()
    secrets.add_settings(SETTINGS, may_be_unknown=True)
    text = json.dumps({"said": [*SETTINGS.values(), "1000", True]})
    found = secrets.without(text)
    assert "hunter2" not in found
    assert json.loads(found)["said"][-2:] == ["1000", True]


def test_an_address_of_a_client_is_no_secret() -> None:
    secrets = Secrets()
    secrets.add_settings({"bootstrap.servers": "host:9092", "sasl.password": "hunter2"})
    assert secrets.without("host:9092 hunter2") == "host:9092 [hidden]"


@pytest.mark.parametrize(
    "line",
    [
        "cannot log in with password=hunter2 and more",
        '{"client_secret": "hunter2 and spaces"}',
        "Authorization: Bearer hunter2",
        "header Basic hunter2==",
        "fetching https://user:hunter2@host/path",
        "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nhunter2",
        "api_key = hunter2",
        "ssl.keystore.key=hunter2",
    ],
)
def test_a_log_loses_what_its_words_tell_of(line: str) -> None:
    found = Secrets().of_log(f"first\n{line}\n")
    assert found.startswith("first\n")
    assert "[hidden]" in found
    assert "hunter2" not in found
