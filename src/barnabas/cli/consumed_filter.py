"""`consume --filter`: which of the consumed records are printed.

A filter is `key=K`, `header=NAME[:VALUE]`, `value=PART` or `partition=N`, as `replay` has them (`record_filter`), or an expression in
CEL over the decoded record (`decoding.expression`). A record passes all of them; the cheap ones are asked first. Each record is decoded
in the format that fits it, and only if an expression needs the part. A record that an expression cannot be asked about is not printed,
and counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from confluent_kafka import Message

from barnabas.cli.failure import Failure
from barnabas.cli.record_filter import RECORD_FILTERS, parse_filter
from barnabas.client.library_message import fields_of
from barnabas.decoding.decoder import Decoder
from barnabas.decoding.expression import BadExpression, Expression, Unjudged
from barnabas.decoding.record_variables import RecordVariables, UndecodedRecord
from barnabas.retries.record import Record
from barnabas.schemas.source import SchemaSource

_PLAIN = re.compile(rf"({'|'.join(RECORD_FILTERS)})=(?!=)")


class ConsumedFilter:
    """The filters of a command.

    Args:
        source: the schemas by which expressions see a record; None without a registry.

    Raises:
        Failure: an expression cannot be used.
        NotInstalled: the library of expressions is missing.

    Attributes:
        unjudged: how many records an expression could not be asked about.
        why: the reason for the first of them.
    """

    def __init__(self, texts: Sequence[str], source: SchemaSource | None = None) -> None:
        self.unjudged = 0
        self.why = ""
        self._passes = parse_filter(tuple(each for each in texts if _PLAIN.match(each)), RECORD_FILTERS)
        self._decoder = Decoder(source)
        try:
            self._expressions = [Expression(each) for each in texts if not _PLAIN.match(each)]
        except BadExpression as error:
            raise _failure(error) from None

    def __repr__(self) -> str:
        return f"<ConsumedFilter {self._expressions} unjudged={self.unjudged}>"

    def passing(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages that pass.

        Raises:
            Failure: an expression has a function that does not exist, or is not a yes or no.
        """
        try:
            return [message for message in messages if self._is_passing(message)]
        except BadExpression as error:
            raise _failure(error) from None

    def _is_passing(self, message: Message) -> bool:
        record = Record(*fields_of(message))
        if not self._passes(record):
            return False
        if not self._expressions:
            return True
        topic, partition, offset, timestamp, key, value, headers, _ = (
            getattr(record, name) for name in Record.__slots__
        )
        undecoded = UndecodedRecord(topic, partition, offset, timestamp, key, value, headers)
        variables = RecordVariables(
            self._decoder, self._decoder.guess(topic, [key]), self._decoder.guess(topic, [value])
        )
        try:
            return all(each.holds(lambda name: variables.of(undecoded, name)) for each in self._expressions)
        except Unjudged as error:
            self.unjudged += 1
            self.why = self.why or str(error)
            return False


def _failure(error: BadExpression) -> Failure:
    words = str(error)
    return Failure(words[:1].lower() + words[1:], "--filter takes NAME=VALUE, or CEL such as 'value.amount > 100'")
