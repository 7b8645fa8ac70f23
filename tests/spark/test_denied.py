"""An error of authorization says which ACL is missing, and how an administrator adds it."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.spark.denied import Access, asking, denied, is_denied


def test_the_sentence_has_the_command():
    found = denied(error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED), Access("Read", "topic", "orders"))
    assert found.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert found.message == (
        "this user needs Read on topic orders: an administrator allows it with"
        " `kafka-acls --add --allow-principal User:NAME --operation Read --topic orders`"
    )


def test_a_prefix_and_two_rights():
    needed = (Access("Write", "transactional-id", "a/", is_prefix=True), Access("Describe", "group", "g"))
    message = denied(error_for(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), *needed).message
    assert message.startswith("this user needs Write on transactional ids that begin with a/ and Describe on group g: ")
    assert "--operation Write --transactional-id a/ --resource-pattern-type prefixed`" in message
    assert message.endswith("--operation Describe --group g`")


def test_other_errors_stay_as_they_are():
    error = error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert denied(error, Access("Read", "topic", "t")) is error
    assert not is_denied(error)


def test_a_block_that_asks():
    with pytest.raises(KafkaError, match="needs Read on group g"), asking(Access("Read", "group", "g")):
        raise error_for(ErrorCode.GROUP_AUTHORIZATION_FAILED)
