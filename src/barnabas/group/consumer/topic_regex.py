"""Subscriptions by regular expression: RE2, matched against whole topic names.

The broker, not the consumer, resolves expressions. The language is RE2, whose matching takes time linear in the
input for every expression: no pattern can stop a coordinator. What RE2 leaves out (back references, look-around) is
INVALID_REGULAR_EXPRESSION.

Source: Kafka class `TopicRegexResolver`; KIP-848, "Regular Expressions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.group.consumer.records import ResolvedRegularExpression
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.regular_expressions import InvalidExpression, compiled


def check_regex(regex: str) -> None:
    """Refuse what is no RE2 expression.

    Raises: KafkaError INVALID_REGULAR_EXPRESSION, with the library's reason.
    """
    try:
        compiled(regex)
    except InvalidExpression as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from None


def resolve_regexes(
    regexes: Iterable[str],
    topics: Iterable[str],
    *,
    version: int,
    now_ms: int,
    sees: Callable[[str], bool] | None = None,
) -> dict[str, ResolvedRegularExpression]:
    """Look up what expressions match; one that cannot be read (written by another RE2) matches nothing.

    Args:
        topics: all topic names.
        version: the metadata offset that they are of.
        sees: returns whether the member whose heartbeat began this may describe a topic; None if everybody may.
    """
    names = list(topics)
    resolved = {}
    for regex in regexes:
        try:
            matches = compiled(regex).matches
        except InvalidExpression:
            found = frozenset[str]()
        else:
            found = frozenset(name for name in names if matches(name) and (sees is None or sees(name)))
        resolved[regex] = ResolvedRegularExpression(found, version, now_ms)
    return resolved
