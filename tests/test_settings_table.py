"""What tools read in the table of settings: names, defaults, meanings, and the name that a mistyped one meant."""

from __future__ import annotations

import pytest

from barnabas.settings_table import near_setting, settings_of, suggestion


def test_topic_settings_for_people() -> None:
    found = {setting.name: setting for setting in settings_of("topic")}
    assert list(found) == sorted(found)
    assert "internal.segment.bytes" not in found
    retention = found["retention.ms"]
    assert (retention.kind, retention.default, retention.valid) == ("long", "604800000", "[-1,...]")
    assert retention.meaning.endswith("-1 keeps them for ever.")


def test_broker_settings_may_have_no_default() -> None:
    found = {setting.name: setting.default for setting in settings_of("broker")}
    assert (found["log.retention.ms"], found["node.id"], found["num.partitions"]) == (None, None, "1")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Unknown topic config name: retention.mss", "; did you mean retention.ms?"),
        ("topic t: Unknown topic config name: cleanup.polcy", "; did you mean cleanup.policy?"),
        ("Unknown group config name: share.isolation.levle", "; did you mean share.isolation.level?"),
        ("Unknown topic config name: bogus", ""),
        ("Invalid value x for configuration retention.ms: Not a number of type LONG", ""),
    ],
)
def test_a_brokers_error_about_an_unknown_name(message: str, words: str) -> None:
    assert suggestion(message) == words


def test_a_name_counts_in_its_own_scope() -> None:
    assert near_setting("broker", "log.retention.hour") == "; did you mean log.retention.hours?"
    assert near_setting("topic", "log.retention.hour") == ""
