"""The options of TLS and login are checked when a query is planned, and their values are shown nowhere."""

from __future__ import annotations

import pickle
import re
import traceback

import pytest

from barnabas.spark.given_options import GivenOptions
from barnabas.spark.security_options import NO_SECURITY, SecurityOptions, security_options, settings_of
from barnabas.spark.sink.options import parse_stream_options as parse_sink
from barnabas.spark.source.batch import BatchReader
from barnabas.spark.source.options import parse_batch_options as parse_source

MARKER = "m4rk-of-a-s3cret"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{MARKER}";'
LOGIN = {
    "kafka.security.protocol": "sasl_plaintext",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": JAAS,
}
SERVERS = {"kafka.bootstrap.servers": "h:9092"}


def test_the_settings_are_those_of_kafkas_clients():
    found = security_options(GivenOptions({**SERVERS, **LOGIN, "subscribe": "t", "kafka.Sasl.Mechanism": "PLAIN"}))
    assert dict(found.settings) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JAAS,
    }
    made = found.client()
    assert made is not None
    assert made.protocol == "SASL_PLAINTEXT"
    assert made.mechanism is not None


def test_a_mapping_with_other_options_gives_the_same():
    assert settings_of({**SERVERS, **LOGIN}) == security_options(GivenOptions(LOGIN))
    assert settings_of(None) is NO_SECURITY


@pytest.mark.parametrize(
    "given", [{}, {"kafka.security.protocol": " plaintext "}, {**LOGIN, "kafka.security.protocol": "PLAINTEXT"}]
)
def test_plaintext_needs_nothing(given):
    found = settings_of(given)
    assert found is NO_SECURITY
    assert found.client() is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"kafka.security.protocol": "TLS"},
            r"kafka\.security\.protocol: TLS is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (
            {"kafka.security.protocol": None},
            r"kafka\.sasl\.jaas\.config is given without kafka\.security\.protocol, which is PLAINTEXT then",
        ),
        ({"kafka.sasl.mechanism": "GSSAPI"}, r"kafka\.sasl\.mechanism: GSSAPI"),
        ({"kafka.sasl.mechanism": "MAGIC"}, r"kafka\.sasl\.mechanism: "),
        ({"kafka.sasl.jaas.config": None}, r"kafka\.sasl\.jaas\.config: is missing"),
        ({"kafka.sasl.jaas.config": f"{MARKER} password={MARKER}"}, r"kafka\.sasl\.jaas\.config: "),
        (
            {"kafka.security.protocol": "SASL_SSL", "kafka.ssl.truststore.location": "/no/such/file.p12"},
            r"kafka\.ssl\.truststore\.location: .*/no/such/file\.p12",
        ),
        (
            {"kafka.sasl.client.callback.handler.class": "software.amazon.msk.Handler"},
            r"kafka\.sasl\.client\.callback\.handler\.class names a Java class",
        ),
    ],
)
@pytest.mark.parametrize(
    "parse",
    [
        settings_of,
        lambda given: parse_sink({**given, "topic": "t"}),
        lambda given: parse_source({**given, "subscribe": "t"}, 0),
    ],
    ids=["options", "sink", "source"],
)
def test_a_bad_setting_is_one_line_that_names_the_option_and_no_secret(parse, change, message):
    given = {name: value for name, value in (SERVERS | LOGIN | change).items() if value is not None}
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        parse(given)
    assert "\n" not in str(caught.value)
    assert MARKER not in "".join(traceback.format_exception(caught.value))


def test_kafkas_own_class_for_tokens_may_be_named():
    name = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    found = settings_of({**LOGIN, "kafka.sasl.login.callback.handler.class": name})
    assert ("sasl.login.callback.handler.class", name) in found.settings


def test_neither_options_nor_readers_show_a_value():
    source, sink = (
        parse_source({**SERVERS, **LOGIN, "subscribe": "t"}, 0),
        parse_sink({**SERVERS, **LOGIN, "topic": "t"}),
    )
    shown = [repr(each) for each in (source, sink, source.security, source.security.client(), BatchReader(source))]
    shown += [str(source), f"{sink}", repr(GivenOptions(LOGIN))]
    assert not [text for text in shown if MARKER in text]
    assert repr(source.security) == "<SecurityOptions sasl.jaas.config, sasl.mechanism, security.protocol>"


def test_an_executor_builds_its_own_from_a_copy(tmp_path):
    trusted = tmp_path / "authority.pem"
    there = SecurityOptions(
        (("security.protocol", "SSL"), ("ssl.truststore.location", str(trusted)), ("ssl.truststore.type", "PEM"))
    )
    here = pickle.loads(pickle.dumps(there))
    assert here == there
    with pytest.raises(ValueError, match=re.escape(str(trusted))):
        here.client()


def test_a_process_keeps_what_it_built_for_a_minute():
    now_s = 1_000.0
    options = settings_of({**LOGIN, "kafka.sasl.jaas.config": JAAS.replace('"u"', '"another"')})
    first = options.client(lambda: now_s)
    assert pickle.loads(pickle.dumps(options)).client(lambda: now_s + 1) is first
    later = options.client(lambda: 10**9)
    assert later == first
    assert later is not first
