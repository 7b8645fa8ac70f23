"""Subscriptions by regular expression: RE2, matched against whole topic names.

The broker, not the consumer, resolves expressions. The language is RE2, whose matching takes time linear in the
input for every expression: no pattern can stop a coordinator. What RE2 leaves out (back references, look-around) is
INVALID_REGULAR_EXPRESSION.

The library is imported with the first expression: most brokers never see one.

Source: Kafka class `TopicRegexResolver`; KIP-848, "Regular Expressions".
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from barnabas.group.consumer.records import ResolvedRegularExpression
from barnabas.protocol.errors import ErrorCode, KafkaError

_MAX_COMPILED = 256


@lru_cache(maxsize=_MAX_COMPILED)
def _compiled(regex: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(regex, options)


def check_regex(regex: str) -> None:
    """Refuse what is no RE2 expression.

    Raises: KafkaError INVALID_REGULAR_EXPRESSION, with the library's reason.
    """
    import re2

    try:
        _compiled(regex)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {text}.",
        ) from None


def resolve_regexes(
    regexes: Iterable[str], topics: Iterable[str], *, version: int, now_ms: int
) -> dict[str, ResolvedRegularExpression]:
    """Look up what expressions match; one that cannot be read (written by another RE2) matches nothing.

    Args:
        topics: all topic names.
        version: the metadata offset that they are of.
    """
    import re2

    names = list(topics)
    resolved = {}
    for regex in regexes:
        try:
            matches = _compiled(regex).fullmatch
        except re2.error:
            found = frozenset[str]()
        else:
            found = frozenset(name for name in names if matches(name) is not None)
        resolved[regex] = ResolvedRegularExpression(found, version, now_ms)
    return resolved
