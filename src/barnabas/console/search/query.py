"""A search as a value: what an address says, checked.

Every field is a parameter of the address of the same name; one with its default is left out, so that a query and its address are the same.
"""

from __future__ import annotations

import base64
import binascii
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

from barnabas.cli.isolation import ISOLATION_LEVELS
from barnabas.cli.offset_grammar import Range, parse_offsets
from barnabas.cli.record_format import ENCODINGS
from barnabas.cli.wording import as_typed
from barnabas.client.partitioner import PARTITIONERS
from barnabas.decoding.decoder import FORMATS
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable
from barnabas.words.times import parse_time_ms

LIMIT = 50
LIMIT_MAX = 500
ORDERS = ("newest", "oldest")
FORMAT_FIELDS = {"value": "“Values are” (value_as)", "key": "“Keys are” (key_as)"}
"""Where a format is chosen, on the page and in the address, by the part of a record."""
_INT64_MAX = 2**63 - 1


class BadQuery(ValueError):
    """A parameter cannot be used; the text is one sentence for people."""


@dataclass(frozen=True, slots=True)
class Query:
    """A search, in the words of its user.

    Attributes:
        topic: where.
        offset: which part of the log, in the grammar of `barnabas consume -o`; empty for all of it.
        partitions: only these; empty for all.
        key: the whole key, written in its encoding; None for any.
        key_encoding: `hex` or `base64`; empty for text.
        partitioner: reads only the partition in which it puts the key; empty to read all.
        header: `NAME` or `NAME:VALUE`; empty for any.
        since, until: only records whose time is not before, and before; empty for any.
        filter: CEL over the decoded record; empty for none.
        limit: how many records a page has.
        order: `newest` or `oldest` first.
        isolation_level: `read_uncommitted` also finds records of aborted and open transactions.
        control: whether to find the control records of transactions, too.
        key_as, value_as: how to decode; empty to guess.
    """

    topic: str
    offset: str = ""
    partitions: tuple[int, ...] = ()
    key: str | None = None
    key_encoding: str = ""
    partitioner: str = ""
    header: str = ""
    since: str = ""
    until: str = ""
    filter: str = ""
    limit: int = LIMIT
    order: str = "newest"
    isolation_level: str = "read_committed"
    control: bool = False
    key_as: str = ""
    value_as: str = ""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Query:
        """Return the query of an address; an empty parameter is its default, and others are ignored.

        Raises:
            BadQuery: a parameter cannot be used.
        """
        given = {name: text for name, text in parameters.items() if text}
        found = cls(
            topic=given.get("topic", ""),
            offset=" ".join(given.get("offset", "").split()),
            partitions=_numbers(given.get("partitions", "")),
            key=given.get("key"),
            key_encoding=_one_of("key_encoding", given, ENCODINGS),
            partitioner=_one_of("partitioner", given, PARTITIONERS),
            header=given.get("header", ""),
            since=given.get("since", "").strip(),
            until=given.get("until", "").strip(),
            filter=given.get("filter", "").strip(),
            limit=_limit(given.get("limit", "")),
            order=_one_of("order", given, ORDERS) or "newest",
            isolation_level=_one_of("isolation_level", given, ISOLATION_LEVELS) or "read_committed",
            control=given.get("control") == "1",
            key_as=_one_of("key_as", given, FORMATS),
            value_as=_one_of("value_as", given, FORMATS),
        )
        if not found.topic:
            raise BadQuery("The address names no topic.")
        if found.partitioner and found.key is None:
            raise BadQuery("A partitioner needs a key, whose partition it chooses.")
        found.range(0)
        found.times(0)
        found.key_bytes()
        return found

    def parameters(self) -> dict[str, str]:
        """Return the parameters of the query's address."""
        texts = {
            "topic": self.topic,
            "offset": self.offset,
            "partitions": ",".join(map(str, self.partitions)),
            "key": self.key or "",
            "key_encoding": self.key_encoding,
            "partitioner": self.partitioner,
            "header": self.header,
            "since": self.since,
            "until": self.until,
            "filter": self.filter,
            "limit": "" if self.limit == LIMIT else str(self.limit),
            "order": "" if self.order == "newest" else self.order,
            "isolation_level": "" if self.isolation_level == "read_committed" else self.isolation_level,
            "control": "1" if self.control else "",
            "key_as": self.key_as,
            "value_as": self.value_as,
        }
        return {name: text for name, text in texts.items() if text}

    @property
    def is_newest_first(self) -> bool:
        """Whether the search runs backwards."""
        return self.order == "newest"

    @property
    def isolation(self) -> int:
        """The protocol's number of the isolation level."""
        return ISOLATION_LEVELS[self.isolation_level]

    def range(self, now_ms: int) -> Range:
        """Return the part of the log.

        Raises:
            BadQuery: it is not of the grammar.
        """
        try:
            found = parse_offsets(tuple(self.offset.split()), now_ms)
        except (ValueError, OverflowError) as error:
            raise BadQuery(f"The offset cannot be used: {error}.") from None
        if any(each is not None and each.number > _INT64_MAX for each in found):
            raise BadQuery("The offset cannot be used: it is too large.")
        return found

    def times(self, now_ms: int) -> tuple[int | None, int | None]:
        """Return the bounds of the records' times in epoch milliseconds, None for none.

        Raises:
            BadQuery: one is not a time, or the first is not before the second.
        """
        since, until = (_time_ms(name, text, now_ms) for name, text in (("since", self.since), ("until", self.until)))
        if max(since or 0, until or 0) > _INT64_MAX:
            raise BadQuery("The times cannot be used: one is too late.")
        if since is not None and until is not None and since >= until:
            raise BadQuery("The times cannot be used: “since” is not before “until”.")
        return since, until

    def fixed(self, now_ms: int) -> Query:
        """Return the same query with times that do not move, for its next pages."""
        since, until = self.times(now_ms)
        texts = ["" if each is None else f"{each:013}" for each in (since, until)]
        return replace(self, since=texts[0], until=texts[1])

    def key_bytes(self) -> bytes | None:
        """Return the key.

        Raises:
            BadQuery: it is not of its encoding.
        """
        if self.key is None:
            return None
        try:
            if self.key_encoding == "hex":
                return bytes.fromhex(self.key)
            if self.key_encoding == "base64":
                return base64.b64decode(self.key, validate=True)
        except (ValueError, binascii.Error):
            raise BadQuery(f"The key is not {self.key_encoding}.") from None
        return self.key.encode("utf-8", "surrogatepass")

    def consume_line(self) -> str:
        """Return the command that finds the same, but for what `beyond_consume` names."""
        words = ["barnabas", "consume", as_typed(printable(self.topic)), "-e"]
        for each in self.offset.split():
            words += ["-o", shlex.quote(each)]
        if self.partitions:
            words += ["-p", ",".join(map(str, self.partitions))]
        if self.isolation_level != "read_committed":
            words += ["--isolation-level", self.isolation_level]
        for name, text in self._filters().items():
            if name not in self.beyond_consume():
                words += ["--filter", shlex.quote(text)]
        return " ".join([*words, "-f", "json"])

    def beyond_consume(self) -> list[str]:
        """Return the names of the parameters that `barnabas consume` has no option for."""
        named = {"since": self.since, "until": self.until, "control": self.control}
        # A control character cannot be typed.
        filters = [name for name, text in self._filters().items() if not text.isprintable()]
        if self.key is not None and self.key_encoding:
            filters = ["key", *(name for name in filters if name != "key")]
        return [*filters, *(name for name, value in named.items() if value)]

    def _filters(self) -> dict[str, str]:
        """Return the values of `--filter` for those parameters that are given."""
        found = {} if self.key is None else {"key": f"key={self.key}"}
        if self.header:
            found["header"] = f"header={self.header}"
        return {**found, "filter": self.filter} if self.filter else found


def _numbers(text: str) -> tuple[int, ...]:
    try:
        found = sorted({int(each) for each in text.replace(" ", "").split(",") if each})
    except ValueError:
        found = [-1]
    if any(not 0 <= each <= 2**31 - 1 for each in found):
        raise BadQuery("The partitions are not a list of numbers, such as 0,3.")
    return tuple(found)


def _limit(text: str) -> int:
    if not text:
        return LIMIT
    if not (text.isascii() and text.isdigit()) or len(text) > 6 or not 1 <= int(text) <= LIMIT_MAX:
        raise BadQuery(f"The limit is not a number from 1 to {LIMIT_MAX}.")
    return int(text)


def _one_of(name: str, given: Mapping[str, str], known: Mapping[str, object] | tuple[str, ...]) -> str:
    text = given.get(name, "")
    if text and text not in known:
        raise BadQuery(f"{name} is “{printable(text)}”, not one of {', '.join(known)}{did_you_mean(text, known)}.")
    return text


def _time_ms(name: str, text: str, now_ms: int) -> int | None:
    if not text:
        return None
    try:
        return parse_time_ms(text, now_ms)
    except (ValueError, OverflowError) as error:
        raise BadQuery(f"“{name}” cannot be used: {error}.") from None
