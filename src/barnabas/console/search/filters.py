"""Whether a record passes: by its key, a header, its time, and an expression over what it says.

The cheap filters are asked first, and a record is decoded only if the expression needs the part.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from barnabas.console.decoding.decoded import Decoded
from barnabas.console.decoding.decoder import Decoder
from barnabas.console.search.expression import Expression, Unjudged
from barnabas.console.search.fetched import Found, State
from barnabas.console.search.query import Query


class Filters:
    """The filters of a query.

    Args:
        now_ms: epoch milliseconds, from which relative times count.
        expression: of the query's filter; None without one.

    Attributes:
        unjudged: how many records the expression could not be asked about.
        why: the first reason for that.
        hidden: records of aborted transactions that read_committed does not show.
    """

    def __init__(self, query: Query, decoder: Decoder, now_ms: int, expression: Expression | None) -> None:
        self.unjudged = 0
        self.why: str | None = None
        self.hidden = 0
        self._query = query
        self._decoder = decoder
        self._expression = expression
        self._is_committed_only = query.isolation_level == "read_committed"
        self._key = query.key_bytes()
        self._since, self._until = query.times(now_ms)
        self._header, self._has_header_value, value = query.header.partition(":")
        self._header_value = value.encode("utf-8", "surrogatepass")

    def __repr__(self) -> str:
        return f"<Filters unjudged={self.unjudged} hidden={self.hidden}>"

    def passes(self, found: Found) -> bool:
        """Return whether a record belongs to the results.

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
        try:
            return expression.holds(partial(self._variable, found))
        except Unjudged as error:
            self.unjudged += 1
            self.why = self.why or f"partition {found.partition}, offset {found.record.offset}: {error}"
            return False

    def _variable(self, found: Found, name: str) -> object:
        """Return a variable of the expression.

        Raises:
            Unjudged: the record's part cannot be decoded.
        """
        record, topic = found.record, self._query.topic
        match name:
            case "value":
                value = self._decoder.value(topic, record.key, record.value, self._query.value_as)
                return _judged("value", value)
            case "key":
                key = self._decoder.key(topic, record.key, self._query.key_as)
                return _judged("key", key)
            case "headers":
                return {header: _header_text(value) for header, value in record.headers}
        simple: dict[str, Callable[[], object]] = {
            "topic": lambda: topic,
            "partition": lambda: found.partition,
            "offset": lambda: record.offset,
            "timestamp": lambda: record.timestamp,
            "time": lambda: _time(record.timestamp),
            "state": lambda: found.state.value,
        }
        return simple[name]()


def _judged(part: str, found: Decoded) -> object:
    if found.note is not None:
        raise Unjudged(f"the {part}: {found.note}")
    if found.is_cut and found.format in ("text", "hex", "base64"):
        raise Unjudged(f"the {part} has {found.size} bytes, which are too many")
    return found.data


def _time(timestamp: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _header_text(value: bytes | None) -> object:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
