"""The sentences, and that they pass from one process to another."""

from __future__ import annotations

import pickle

from barnabas.claims.errors import PayloadError


def test_an_error_of_a_worker_process_keeps_its_place() -> None:
    error = pickle.loads(pickle.dumps(PayloadError("t", 1, 17, "file:///f", "is gone")))
    assert str(error) == "the payload of t-1@17 is gone: file:///f"
    assert (error.topic, error.partition, error.offset, error.uri, error.reason) == ("t", 1, 17, "file:///f", "is gone")


def test_a_record_without_a_place_and_a_claim_without_a_payload() -> None:
    assert str(PayloadError(None, None, None, "u", "is gone")) == "the payload of a record is gone: u"
    assert str(PayloadError("t", 0, 1, None, "no")) == "the claim of t-0@1 is not valid: no"
