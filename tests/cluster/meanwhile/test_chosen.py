"""What works meanwhile depends on the release and on the security, and the reason is said."""

from __future__ import annotations

from tests.cluster.meanwhile.chosen import NAMES, chosen


def test_a_new_release_in_plain_text_has_all():
    assert chosen(NAMES, "4.3.1", is_secured=False) == (list(NAMES), [])


def test_what_cannot_work_is_left_out_with_its_reason():
    able, reasons = chosen(NAMES, "4.1.2", is_secured=True)
    assert able == ["connect"]
    assert reasons == [
        "no share group: a new cluster of Apache Kafka 4.1.2 has none",
        "no Kafka Streams: the driver of its smoke test cannot log in",
    ]


def test_only_what_was_asked_for():
    assert chosen(["connect"], "4.0.0", is_secured=False) == (["connect"], [])
    assert chosen([], "4.0.0", is_secured=True) == ([], [])
