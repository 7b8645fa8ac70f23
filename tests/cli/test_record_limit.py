"""Records and batches that are too large: which one, how large, which setting, and what to type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.record_limit import batch_settings, too_large
from barnabas.client.admin import Admin
from barnabas.client.topics import NewTopic
from barnabas.main import command_group


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        yield running


def run(broker: barnabas.Broker, command: str, given: str = "") -> Result:
    environment = {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
    return CliRunner().invoke(command_group(), shlex.split(command)[1:], input=given, env=environment)


def topic(broker: barnabas.Broker, name: str, **configs: str) -> str:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 1, 1, {key.replace("_", "."): value for key, value in configs.items()})])
    return name


def test_a_large_record_is_named_and_the_hint_works(broker: barnabas.Broker) -> None:
    name = topic(broker, "small", max_message_bytes="5000")
    given = "a\nb\n" + "x" * 6000 + "\n"
    result = run(broker, f"barnabas produce {name}", given)
    assert result.exit_code == 1
    assert result.stderr == (
        "error: 1 of 3 records was not produced: record 3 has 6000 bytes, more than topic small accepts"
        " (max.message.bytes=5000) (`barnabas topic alter small -c max.message.bytes=7000`)\n"
    )
    hint = re.search(r"`(.*)`", result.stderr)
    assert hint is not None
    assert run(broker, hint[1]).exit_code == 0
    assert run(broker, f"barnabas produce {name}", given).stdout == "produced 3 records (small-0: 3)\n"


def test_many_small_records_fit_a_topic_with_small_batches(broker: barnabas.Broker) -> None:
    """librdkafka would fill a batch of a megabyte, and every record in it would be too large."""
    name = topic(broker, "narrow", max_message_bytes="2000")
    result = run(broker, f"barnabas produce {name}", "twenty bytes of text\n" * 1000)
    assert result.stdout == "produced 1000 records (narrow-0: 1000)\n"


def test_a_topic_for_large_records_takes_them_without_a_setting_of_the_client(broker: barnabas.Broker) -> None:
    name = topic(broker, "wide", max_message_bytes="3000000")
    result = run(broker, f"barnabas produce {name}", "x" * 1_100_000)
    assert result.stdout == "produced 1 record (wide-0: 1)\n"


def test_settings_that_are_given_too_small_or_too_large(broker: barnabas.Broker) -> None:
    name = topic(broker, "given", max_message_bytes="50000")
    small = run(broker, f"barnabas produce {name} -X message.max.bytes=2000", "x" * 6000 + "\nb\n")
    assert "record 1 has 6000 bytes, more than this client sends (message.max.bytes) (-X message.max" in small.stderr
    assert "and the input from record 2 on was not read" in small.stderr
    large = run(broker, f"barnabas produce {name} -X batch.size=1000000 -X linger.ms=500", ("x" * 99 + "\n") * 1000)
    assert "a batch has more bytes than topic given accepts (max.message.bytes=50000) (-X batch.size=50000)" in (
        large.stderr
    )


def test_a_partition_that_does_not_exist(broker: barnabas.Broker) -> None:
    name = topic(broker, "one")
    result = run(broker, "barnabas produce one -f json", '{"value": "a", "partition": 7}\n')
    assert result.stderr == (
        "error: the record was not produced: topic one has no partition 7"
        f" (`barnabas topic describe {name}` shows which there are)\n"
    )


def test_settings_for_a_limit() -> None:
    assert batch_settings(None, {}) == {}
    assert batch_settings(5000, {}) == {"batch.size": 5000, "message.max.bytes": 1_000_000}
    assert batch_settings(2_000_000, {"batch.size": "16384"}) == {"message.max.bytes": 2_000_000}


def test_a_limit_that_the_broker_does_not_tell() -> None:
    what, hint = too_large("t", 4, 9000, None, local=False)
    assert what == "record 4 has 9000 bytes, more than topic t accepts (max.message.bytes)"
    assert hint == "`barnabas topic alter t -c max.message.bytes=10000`"
