"""Settings for the library, and its errors in our words."""

import pytest
from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import Producer

from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import client_settings, connected, connection_of, library_failure
from barnabas.cli.output import TableOutput
from barnabas.cli.session import Session
from barnabas.client.admin import Admin


def test_settings_of_the_library() -> None:
    properties = {
        "bootstrap.servers": "b:1",
        "acks": "1",
        "key.serializer": "java",
        "linger.ms": "7",
        "max.poll.records": "5",
    }
    session = Session(None, properties, None, TableOutput())
    settings = client_settings(session, ("linger.ms=9", "batch.size=5"), {"acks": "all"})
    del settings["error_cb"]
    assert settings == {
        "bootstrap.servers": "b:1",
        "client.id": "barnabas-cli",
        "log_level": 0,
        "acks": "all",
        "linger.ms": "9",
        "batch.size": "5",
    }


def test_the_cluster_of_our_own_client() -> None:
    settings = client_settings(connection_of(Admin(["b:1", "[::1]:2"], client_id="console")), (), {"acks": "all"})
    del settings["error_cb"]
    assert settings == {"bootstrap.servers": "b:1,[::1]:2", "client.id": "console", "log_level": 0, "acks": "all"}


def test_losing_the_brokers_is_one_warning(capsys: pytest.CaptureFixture[str]) -> None:
    warn = client_settings(Session("b:1", {}, None, TableOutput()), (), {})["error_cb"]
    for code in (LibraryError._TRANSPORT, LibraryError._ALL_BROKERS_DOWN, LibraryError._ALL_BROKERS_DOWN):
        warn(LibraryError(code))
    assert capsys.readouterr().err == "warning: lost the brokers at b:1, trying to reach them again\n"


def test_an_empty_group_is_rejected_before_the_library_ends_the_process() -> None:
    session = Session("b:1", {"group.id": ""}, None, TableOutput())
    with pytest.raises(Failure, match=r"group\.id is empty"):
        client_settings(session, (), {})


def test_an_offset_outside_the_log_is_reported_as_such() -> None:
    failure = library_failure(LibraryError(LibraryError._AUTO_OFFSET_RESET, "no offset"), "topic t")
    assert "offset out of range" in failure.format_message()
    assert "where the log begins and ends" in failure.format_message()


def test_the_librarys_own_words_are_not_shown() -> None:
    for code in (LibraryError._MSG_TIMED_OUT, LibraryError._UNKNOWN_PARTITION, LibraryError._GAPLESS_GUARANTEE):
        shown = library_failure(LibraryError(code), "topic t").format_message()
        assert "Local:" not in shown
    assert shown == "topic t: gap-less ordering would not be guaranteed if proceeding"


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("Local: Timed out", ""),
        ("Failed to get watermark offsets: Local: Timed out", ": failed to get watermark offsets"),
        ("cannot read t-0 to its end", ": cannot read t-0 to its end"),
    ],
)
def test_a_timeout_says_what_was_waited_for(told: str, shown: str) -> None:
    failure = library_failure(LibraryError(LibraryError._TIMED_OUT, told), "topic t")
    assert failure.message == f"topic t: the broker did not answer in time{shown}"


def test_a_setting_that_is_not_valid_names_where_it_was_given() -> None:
    def hint(properties: dict[str, str], *extra: str) -> tuple[str, str | None]:
        with pytest.raises(Failure) as error:
            connected(Producer, Session("b:1", properties, None, TableOutput()), extra, {})
        return error.value.message, error.value.hint

    unknown = "bogus.thing is not a setting that librdkafka knows"
    known = "-X takes settings such as linger.ms=5; CONFIGURATION.md of librdkafka lists them"
    assert hint({}, "bogus.thing=1") == (unknown, known)
    assert hint({}, "acks=some")[0] == "acks=some: is not a valid value"
    assert hint({}, "enable.idempotence=maybe")[0] == "enable.idempotence=maybe: must be true or false"
    assert hint({}, "linger.msx=1")[0].endswith("knows; did you mean linger.ms?")
    message, where = hint({"linger.ms": "99999999"})
    assert message == "linger.ms=99999999: must be from 0 to 900000"
    assert where == "it is in the --command-config file"
    assert hint({"linger.ms": "99999999"}, "linger.ms=-7")[1] == "it is given with -X"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("security.protocol=sasl_ssl", "security.protocol is for TLS or SASL, and -X cannot set it"),
        ("sasl.username=me", "sasl.username is for TLS or SASL, and -X cannot set it"),
        ("ssl.ca.location=ca.pem", "ssl.ca.location is for TLS or SASL"),
        ("enable.ssl.certificate.verification=false", "enable.ssl.certificate.verification is for TLS or SASL"),
    ],
)
def test_tls_and_sasl_are_refused_before_the_library_tries_them_for_ever(setting: str, words: str) -> None:
    session = Session("b:1", {"sasl.username": "of the file, which serves other tools too"}, None, TableOutput())
    with pytest.raises(Failure) as refused:
        client_settings(session, (setting,), {})
    assert refused.value.message.startswith(words)
    assert refused.value.hint == "write it into a file for --command-config"
    assert client_settings(session, ("security.protocol=plaintext",), {})["security.protocol"] == "plaintext"
