"""What a mask hides, whatever a producer wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.decoding.decoder import Decoder
from barnabas.decoding.masks import MASKED, MaskRule, Masks
from barnabas.records.record import Record


def masked(fields: tuple[str, ...], value: bytes | None, value_as: str = "", **others: Any) -> Record:
    record = Record(**({"offset": 0, "timestamp": 0, "key": b"k", "value": value, "headers": []} | others))
    return Decoder(None, Masks([MaskRule(("orders",), fields)])).masked("orders", record, "", value_as)


def value_of(fields: tuple[str, ...], data: object) -> Any:
    value = masked(fields, json.dumps(data).encode()).value
    assert value is not None
    return json.loads(value)


@pytest.mark.parametrize(
    ("fields", "data", "wanted"),
    [
        (("value.card",), {"card": "4111", "n": 1}, {"card": MASKED, "n": 1}),
        (("value.card.number",), {"card": {"number": 4111, "of": "a"}}, {"card": {"number": MASKED, "of": "a"}}),
        (("value.card.number",), {"card": "4111"}, {"card": MASKED}),
        (("value.card.number",), {"card": None, "other": {"number": 1}}, {"card": None, "other": {"number": 1}}),
        (("value.cards.number",), {"cards": [{"number": 1}, {"number": [2]}]}, {"cards": [{"number": MASKED}] * 2}),
        (("value.*.number",), {"a": {"number": 1}, "b": [{"number": 2}]}, {"a": {"number": MASKED}, "b": [{"number": MASKED}]}),
        (("value.*_name",), {"last_name": {"a": 1}, "n": 1}, {"last_name": MASKED, "n": 1}),
        (("value",), {"card": "4111"}, MASKED),
        (("value.card",), ["4111"], [MASKED]),
        (("value.card",), "4111", MASKED),
        (("value.a", "value.b"), {"a": 1, "b": 2, "c": 3}, {"a": MASKED, "b": MASKED, "c": 3}),
        (("key",), {"card": "4111"}, {"card": "4111"}),
    ],
)  # fmt: skip
def test_fields(fields: tuple[str, ...], data: object, wanted: object) -> None:
    assert value_of(fields, data) == wanted


@pytest.mark.parametrize(
    ("value", "value_as"),
    [
        (b'{"card": "4111"}', "hex"),
        (b'{"card": "4111"}', "base64"),
        (b'{"card": "4111"}', "text"),
        (b'{"card": "4111"}', "avro"),
        (b'{"card": "4111"', "json"),
        (b'{"card": "4111"', ""),
        (b"4111", ""),
        (b"\xff4111", ""),
        (b'{"card": "' + b"4" * 300_000 + b'"}', "json"),
        (b'{"n":' * 900 + b"4111" + b"}" * 900, "json"),
        (b"[" * 100_000 + b"4111", "json"),
    ],
)
def test_a_value_without_its_fields_is_masked_as_a_whole(value: bytes, value_as: str) -> None:
    found = masked(("value.card", "value.*.*"), value, value_as).value
    assert found is not None
    assert b"4" not in found


def test_a_duplicate_field_is_masked_too() -> None:
    assert masked(("value.card",), b'{"card": 4111, "card": 4112}').value == b'{"card": "(masked)"}'


def test_key_and_headers() -> None:
    found = masked(
        ("key.id", "headers.tok*"), None, key=b'{"id": 7}', headers=[("token", b"s"), ("h", b"1"), ("tok", None)]
    )
    assert found.key == b'{"id": "(masked)"}'
    assert found.value is None
    assert found.headers == [("token", b"(masked)"), ("h", b"1"), ("tok", None)]
    whole = masked(("headers",), b"v", headers=[("a.b", b"s")])
    assert whole.headers == [("a.b", b"(masked)")]
    assert (whole.key, whole.value) == (b"k", b"v")


def test_topics() -> None:
    masks = Masks([MaskRule(("orders", "pay-*"), ("value.card",)), MaskRule(("pay-eu",), ("key", "value.card"))])
    assert masks.of("order") is None
    assert masks.of("orders.eu") is None
    eu = masks.of("pay-eu")
    assert eu is not None
    assert eu.fields == ("value.card", "key")
    assert masks.formats("pay-eu", "hex", "avro") == ("json", "json")
    assert masks.formats("pay-us", "hex", "avro") == ("hex", "json")
    assert masks.formats("other", "hex", "avro") == ("hex", "avro")
    with pytest.raises(ValueError, match="field card does not begin with key, value, headers"):
        Masks([MaskRule(("orders",), ("card",))])


def test_text_that_utf8_has_not() -> None:
    found = masked(("value.card",), b'{"card": 1, "s": "\\ud800"}').value
    assert found is not None
    assert json.loads(found) == {"card": MASKED, "s": "\ud800"}
