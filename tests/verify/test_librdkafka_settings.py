"""Settings that every version of the library accepts."""

import confluent_kafka
import pytest

from barnabas.verify import librdkafka_settings
from barnabas.verify.librdkafka_settings import steady


@pytest.mark.parametrize(("version", "set_"), [(0x020902FF, False), (0x020A00FF, True)])
def test_the_recovery_strategy_is_set_where_it_exists(
    monkeypatch: pytest.MonkeyPatch, version: int, set_: bool
) -> None:
    monkeypatch.setattr(librdkafka_settings, "libversion", lambda: ("", version))
    assert ("metadata.recovery.strategy" in steady("b:1")) == set_


def test_the_library_accepts_them() -> None:
    confluent_kafka.Producer(steady("127.0.0.1:1"))
