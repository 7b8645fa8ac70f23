from __future__ import annotations

import pytest

from barnabas.console.changes.given import BadForm
from barnabas.console.masked_letters import masked_letter, refuse_masked_filters, refuse_target
from barnabas.decoding.decoder import Decoder
from barnabas.decoding.masks import MaskRule, Masks
from barnabas.retries.headers import FailureHeaders, read_failure, write_failure
from barnabas.retries.record import Record
from barnabas.retries.redrive import DeadLetter

MASKS = Masks([MaskRule(("orders",), ("value.card",)), MaskRule(("orders.dlq",), ("key", "headers.*.message"))])
HEADERS = write_failure(FailureHeaders("orders", 1, 5, error="NoCard", message="card 4111"))


def test_a_dead_letter_has_the_masks_of_both_topics() -> None:
    record = Record("orders.dlq", 0, 3, 17, b"4111", b'{"card": "4111", "country": "DE"}', HEADERS)
    letter = DeadLetter(record, read_failure(HEADERS) or FailureHeaders(), 0, True)
    hidden = masked_letter(Decoder(None, MASKS), letter)
    assert "4111" not in repr(hidden)
    assert hidden.record.value == b'{"card": "(masked)", "country": "DE"}'
    assert (hidden.failure.topic, hidden.failure.offset, hidden.failure.message) == ("orders", 5, None)
    assert (hidden.record.offset, hidden.is_redriven) == (3, True)
    assert masked_letter(Decoder(), letter) == letter


@pytest.mark.parametrize("each", ["key=4111", "message=4111", "error=x"])
def test_a_filter_that_would_tell(each: str) -> None:
    with pytest.raises(BadForm, match="this console masks key, headers"):
        refuse_masked_filters(MASKS, "orders.dlq", [each])
    refuse_masked_filters(MASKS, "other.dlq", [each])


def test_filters_that_do_not_tell() -> None:
    refuse_masked_filters(MASKS, "orders.dlq", ["offset=3", "partition=0"])
    refuse_masked_filters(MASKS, "orders", ["key=4111"])


def test_a_target_must_hide_the_same() -> None:
    masks = Masks([MaskRule(("orders*",), ("value.card",)), MaskRule(("orders",), ("key",))])
    refuse_target(masks, "orders-copy", "orders")
    refuse_target(masks, "orders", "")
    for target in ("orders-copy", "open"):
        with pytest.raises(BadForm, match=f"masks .*key of topic orders, and not of topic {target}"):
            refuse_target(masks, "orders", target)
