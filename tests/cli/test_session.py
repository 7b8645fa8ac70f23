from unittest import mock

import click
import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.output import TableOutput
from barnabas.cli.session import Session, parse_pairs
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
