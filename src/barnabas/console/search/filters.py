"""Whether a record passes: by its key, a header, its time, and an expression over what it says.

The cheap filters are asked first, and a record is decoded only if the expression needs the part.
"""

from __future__ import annotations

from functools import partial

from barnabas.console.search.fetched import Found, State
from barnabas.console.search.query import BadQuery, Query
from barnabas.decoding.decoder import Decoder
from barnabas.decoding.expression import BadExpression, Expression, Unjudged
from barnabas.decoding.masks import TopicMask
from barnabas.decoding.record_variables import RecordVariables, UndecodedRecord

UNJUDGED_PARTS = ("value", "key", "")
"""A record is not judged because its value or its key could not be decoded, or for another reason."""


class Filters:
    """The filters of a query.

    Args:
        now_ms: epoch milliseconds, from which relative times count.

    Raises:
        BadQuery: the query's expression does not parse, or a filter would tell what is masked.
        NotInstalled: an expression needs a library that is missing.

    Attributes:
        unjudged: how many records the expression could not be asked about: by the part that could not be decoded, one of
            `UNJUDGED_PARTS`.
        why: the first reason for that, by the same.
        hidden: records of aborted transactions that read_committed does not show.
    """

    def __init__(self, query: Query, decoder: Decoder, now_ms: int) -> None:
        self.unjudged = dict.fromkeys(UNJUDGED_PARTS, 0)
        self.why: dict[str, str] = {}
        self.hidden = 0
        self._query = query
        self._expression = _expression(query.filter)
        self._variables = RecordVariables(decoder, *decoder.masks.formats(query.topic, query.key_as, query.value_as))
        self._undecoded = self._variables.undecoded(query.topic)
        self._check(decoder.masks.of(query.topic))
        self._is_committed_only = query.isolation_level == "read_committed"
        self._key = query.key_bytes()
        self._since, self._until = query.times(now_ms)
        self._header, self._has_header_value, value = query.header.partition(":")
        self._header_value = value.encode("utf-8", "surrogatepass")

    def __repr__(self) -> str:
        return f"<Filters unjudged={self.unjudged} hidden={self.hidden}>"

    def _check(self, mask: TopicMask | None) -> None:
        """Raise an error for a filter that compares a masked field: its results would tell the field."""
        if mask is None:
            return
        if mask.key and self._query.key is not None:
            raise BadQuery(f"The keys of topic {self._query.topic} are masked, and cannot be searched.")
        name, has_value, _ = self._query.header.partition(":")
        if has_value and mask.hides_header(name):
            raise BadQuery(f"Header {name} of topic {self._query.topic} is masked, and cannot be searched.")

    def passes(self, found: Found) -> bool:
        """Return whether a record, masked as its topic is, belongs to the results.

        Raises:
            BadQuery: the expression cannot be used.
        """
        record = found.record
        if found.batch.is_control:
            # The key of a marker is the coordinator's, so filters do not apply to it, but for its time.
            return self._query.control and self._is_in_time(record.timestamp)
        if self._is_committed_only and found.state is State.ABORTED:
            self.hidden += 1
            return False
        if self._key is not None and record.key != self._key:
            return False
        if not self._is_in_time(record.timestamp):
            return False
        if self._header and not any(self._is_wanted(name, value) for name, value in record.headers):
            return False
        return self._expression is None or self._holds(self._expression, found)

    def _is_in_time(self, timestamp: int) -> bool:
        return (self._since is None or timestamp >= self._since) and (self._until is None or timestamp < self._until)

    def _is_wanted(self, name: str, value: bytes | None) -> bool:
        return name == self._header and (not self._has_header_value or value == self._header_value)

    def _holds(self, expression: Expression, found: Found) -> bool:
        record = found.record
        raw = UndecodedRecord(
            self._query.topic,
            found.partition,
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            record.headers,
            found.state.value,
        )
        try:
            return expression.holds(partial(self._variables.of, raw), self._undecoded)
        except Unjudged as error:
            self.unjudged[error.part] += 1
            self.why.setdefault(error.part, f"partition {found.partition}, offset {record.offset}: {error}")
            return False
        except BadExpression as error:
            raise BadQuery(str(error)) from None


def _expression(text: str) -> Expression | None:
    try:
        return Expression(text) if text else None
    except BadExpression as error:
        raise BadQuery(str(error)) from None
