"""The names that clients know."""

import confluent_kafka
import pytest

from barnabas.cli.client_settings import client_settings, is_client_setting, is_librdkafkas


@pytest.mark.parametrize("name", ["bootstrap.servers", "key.deserializer", "linger.ms", "schema.registry.url"])
def test_what_a_client_knows(name: str) -> None:
    assert is_client_setting(name)


@pytest.mark.parametrize("name", ["bogus.thing", "reqest.timeout.ms", ""])
def test_what_no_client_knows(name: str) -> None:
    assert not is_client_setting(name)


def test_the_library_has_every_name_that_is_called_its_own() -> None:
    def is_known(name: str) -> bool:
        with pytest.raises((confluent_kafka.KafkaException, TypeError)) as raised:
            confluent_kafka.Producer({name: "1", "no.such.name": "1"})
        return f'No such configuration property: "{name}"' not in str(raised.value)

    # The others may be missing from a library without SASL or TLS.
    plain = [name for name in client_settings() if not name.startswith(("sasl.", "ssl.", "https.", "enable.ssl."))]
    assert [name for name in plain if is_librdkafkas(name) and not is_known(name)] == []
