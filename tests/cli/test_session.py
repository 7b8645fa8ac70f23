import subprocess
import sys
from pathlib import Path
from unittest import mock

import click
import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.output import TableOutput
from barnabas.cli.session import Session, parse_pairs, read_command_config
from barnabas.words import hidden_values
from barnabas.words.error_lines import error_line
from tests.cli.made_up_cluster import PARTITIONS, MadeUpAdmin


def session(bootstrap: str | None = None, **properties: str) -> Session:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return Session(bootstrap, named, None, TableOutput())


def test_where_the_address_comes_from() -> None:
    assert session().bootstrap == "localhost:9092"
    assert session(bootstrap_servers="file:1").bootstrap == "file:1"
    assert session("given:1", bootstrap_servers="file:1").bootstrap == "given:1"
    assert session(request_timeout_ms="5").timeout_ms == 5


def test_security_is_that_of_the_file_and_a_wrong_setting_is_named() -> None:
    assert session().security is None
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="s3cret";'
    settings = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_jaas_config": login}
    secured = session(**settings)
    assert secured.admin().cluster.security is secured.security
    assert "s3cret" not in f"{secured.security!r}"
    with pytest.raises(Failure, match=r"^security\.protocol: TLS is not one of PLAINTEXT, SSL, ") as raised:
        session(security_protocol="tls")
    assert raised.value.hint == "it is in the --command-config file"


@pytest.mark.parametrize(
    ("given", "properties", "words"),
    [
        ("a:b:c", {}, "--bootstrap-server: 'a:b:c' is not a valid broker address"),
        (None, {"bootstrap_servers": "a:99999"}, "bootstrap.servers in the --command-config file: 'a:99999'"),
    ],
)
def test_an_address_that_is_not_valid_is_a_wrong_command_line(
    given: str | None, properties: dict[str, str], words: str
) -> None:
    with pytest.raises(click.UsageError, match=words):
        session(given, **properties)


def test_pairs() -> None:
    assert parse_pairs(("a=1", "b=", "c=x=y"), "--config") == {"a": "1", "b": "", "c": "x=y"}
    for bad in ("a", "=1"):
        with pytest.raises(click.BadParameter):
            parse_pairs((bad,), "--config")


def test_names_are_listed_once_and_not_among_too_many() -> None:
    with mock.patch.object(Session, "admin", return_value=MadeUpAdmin()) as admin:
        asked = session()
        assert asked.names("topic") == asked.names("topic") == sorted(PARTITIONS)
        assert admin.call_count == 1
        assert "billing-7" in asked.names("transactional id")
        with mock.patch("barnabas.cli.session._MOST_NAMES", 2):
            assert session().names("topic") == []


def test_no_names_without_a_broker() -> None:
    assert session("127.0.0.1:1").names("group") == []


def test_a_file_of_librdkafkas_names_is_understood() -> None:
    given = {"security_protocol": "sasl_plaintext", "sasl_mechanisms": "PLAIN", "sasl_username": "me"}
    secured = session(**given, sasl_password="s3cret").security
    assert secured is not None
    assert (secured.protocol, secured.mechanism_name) == ("SASL_PLAINTEXT", "PLAIN")
    with pytest.raises(Failure, match=r"^sasl\.password: is missing"):
        session(**given)


def test_a_file_may_have_its_values_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden_values, "_hidden", set())
    (tmp_path / "password").write_text("hunter2\n")
    file = tmp_path / "client.properties"
    text = (
        "config.providers=directory\n"
        "config.providers.directory.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider\n"
        f"sasl.password=${{directory:{tmp_path}:password}}\n"
    )
    file.write_text(text)
    assert read_command_config(str(file))["sasl.password"] == "hunter2"
    assert error_line("no hunter2 here") == "error: no [hidden] here"
    file.write_text(text.replace(":password}", ":other}"))
    with pytest.raises(Failure, match=f"^{file}: sasl.password: .*: the directory has no file other$"):
        read_command_config(str(file))


def test_http_is_imported_only_to_ask_for_a_token_or_a_schema() -> None:
    show = "import sys, barnabas.cli.consume, barnabas.cli.produce; print('http.client' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", show], check=True, capture_output=True, text=True)
    assert ran.stdout == "False\n"
