"""The table of settings is whole, documented, quick to read, and the page in docs/ is made of it."""

from __future__ import annotations

import pytest
import read_configs
import write_configuration_docs

from barnabas.config.config_table import DEFAULTS, EMBEDDED_DEFAULTS, IMPLIED, config_schema
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.settings_table import TABLE, rows

SCHEMA = config_schema()


def test_all_of_kafkas_settings_are_there() -> None:
    counts = {kind.name: len(SCHEMA.of(kind)) for kind in SCHEMA.keys}
    assert counts["TOPIC"] == 38 + 2  # barnabas.ordered.growth, barnabas.flush.before.ack
    assert counts["GROUP"] == 27
    assert counts["CLIENT_METRICS"] == 3
    assert counts["BROKER"] >= 384


def test_every_setting_has_a_sentence() -> None:
    for kind in SCHEMA.keys:
        for key in SCHEMA.of(kind).values():
            assert key.documentation.endswith("."), key.name
            assert key.documentation[0].isupper(), key.name
    # The column itself is filled, so that a new setting of a later Kafka is noticed.
    assert all(row.meaning for row in rows())


def test_every_default_passes_its_own_bounds() -> None:
    for kind in SCHEMA.keys:
        for key in SCHEMA.of(kind).values():
            if key.default not in (None, ""):
                key.parse(key.default)


def test_every_synonym_is_a_broker_setting() -> None:
    broker = SCHEMA.of(ConfigResourceType.BROKER)
    for kind in SCHEMA.keys:
        for key in SCHEMA.of(kind).values():
            assert all(name in broker for name, _ in key.synonyms), key.name


def test_deviations_name_real_settings() -> None:
    broker = SCHEMA.of(ConfigResourceType.BROKER)
    assert {*DEFAULTS, *EMBEDDED_DEFAULTS, *IMPLIED} <= set(broker)


def test_defaults_worth_copying_exactly() -> None:
    topic, broker = SCHEMA.of(ConfigResourceType.TOPIC), SCHEMA.of(ConfigResourceType.BROKER)
    assert {name: topic[name].default for name in ("retention.ms", "max.message.bytes", "segment.bytes")} == {
        "retention.ms": "604800000",
        "max.message.bytes": "1048588",
        "segment.bytes": "1073741824",
    }
    assert {
        name: broker[name].default for name in ("num.partitions", "fetch.max.bytes", "offsets.retention.minutes")
    } == {
        "num.partitions": "1",
        "fetch.max.bytes": "57671680",
        "offsets.retention.minutes": "10080",
    }


def test_the_page_is_current() -> None:
    page = write_configuration_docs.PAGE.read_text(encoding="utf-8")
    assert page == write_configuration_docs.page(), "run `make docs`"


@pytest.mark.conform
def test_the_facts_are_those_of_kafkas_classes() -> None:
    before = TABLE.read_text(encoding="utf-8")
    assert read_configs.merge(read_configs.read_facts("4.4.0"), before) == before
