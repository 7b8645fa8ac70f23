"""Messages of brokers, in plain words for people.

Brokers of this project return the messages of Apache Kafka word for word, because other people's tools show and compare them; a
cluster may also be Apache Kafka's own. The commands translate them here, and nowhere else. A message that is not in the table stays
as it is.

    Invalid value abc for configuration retention.ms: Not a number of type LONG      retention.ms=abc: must be a whole number
"""

from __future__ import annotations

import re
from typing import NamedTuple

from barnabas.words.nearest import did_you_mean

__all__ = ["Plain", "in_plain_words"]


class Plain(NamedTuple):
    """A message for people.

    Attributes:
        hint: what to do next; None if the message is not known here, or says it.
    """

    message: str
    hint: str | None = None


_RESTART = "set it in server.properties, and start the broker again"
_HEALTH = "`barnabas cluster status` shows what is wrong"
_FEWER = "ask for fewer in one request"

# Patterns are compiled when the first message is translated: `barnabas start` imports this module too.
_VALUE = r"Invalid value \[?(?P<value>.*?)\]? for configuration (?P<name>[\w.-]+): (?:(?P=name) )?(?P<why>.*)"
_REASONS = (
    (r"Not a number of type (?:SHORT|INT|LONG)", "must be a whole number"),
    (r"Not a number of type DOUBLE", "must be a number"),
    (r"Expected value to be either true or false", "must be true or false"),
    (r"Value must be at least (\S+)", r"must be at least \1"),
    (r"Value must be no more than (\S+)", r"must be at most \1"),
    (r"Value must be between (\S+) and (\S+) or equal to (\S+)", r"must be from \1 to \2, or \3"),
    (r"String must be one of(?: \(case insensitive\))?: (.*)", r"must be one of \1"),
    (r"String must be non-empty", "must not be empty"),
)
_STORES = r"Invalid value \S+: Validation of dynamic config update of SSLFactory failed: [\w.$]+: "
_MESSAGES = (
    (
        r"Unable to replicate the partition (\d+) time\(s\): The target replication factor of \d+ cannot be reached"
        r" because only (\d+) broker\(s\) are registered.*",
        r"\1 replicas need \1 brokers, and the cluster has \2",
        r"-r \2 is the most",
    ),
    (
        r"Unable to replicate the partition \d+ time\(s\): All brokers are currently fenced.*",
        "no broker is ready to take partitions",
        _HEALTH,
    ),
    (r"Excessively large number of (?:additional )?partitions per request", "too many partitions", _FEWER),
    (r"Unable to perform excessively large batch operation", "too many changes", _FEWER),
    (
        r"Cannot update these configs dynamically: (?:\w*Set\(|\[)(.*?)[\])]",
        r"\1 cannot change while the broker runs",
        _RESTART,
    ),
    (
        r"Cannot update these configs at default cluster level, broker id must be specified: (?:\w*Set\(|\[)(.*?)[\])]",
        r"\1 cannot be the same for all brokers",
        "name one: `barnabas config alter broker 1 --set KEY=VALUE`",
    ),
    (
        r"These security configs can be dynamically updated only per-listener using the listener prefix: (?:\w*Set\(|\[)(.*?)[\])]",
        r"\1 cannot be the same for all listeners",
        "name one: listener.name.NAME.SETTING, the name in lower case",
    ),
    (
        rf"{_STORES}(Keystore (?:DistinguishedName|SubjectAltNames) .*) for configuration Invalid dynamic configuration",
        r"the broker keeps its certificate: \1",
        "ssl.allow.dn.changes and ssl.allow.san.changes in server.properties allow other names",
    ),
    (
        rf"{_STORES}(.*) for configuration Invalid dynamic configuration",
        r"the broker keeps its certificate: \1",
        "the broker reads the file, as its own user",
    ),
    (
        r"Topic name is invalid: ('.*') contains one or more characters other than .*",
        r"\1 is not a valid topic name",
        "use letters, digits, '.', '_' and '-', at most 249 of them",
    ),
    (
        r"The topic (\S+) currently has (\d+) partition\(s\); (\d+) would not be an increase",
        r"topic \1 has \2 partitions already",
        "the number can only grow",
    ),
    (r"Topic already has (\d+) partition\(s\)", r"it has \1 partitions already", "the number can only grow"),
    (r"Can't (?:APPEND|SUBTRACT) to key (\S+) because its type is not LIST", r"\1 is not a list", "--set changes it"),
    (r"Transactional id not found", "the transactional id does not exist", None),
    (r"Unknown (topic|group) config name: (\S+)", r"a \1 has no setting \2", None),
)


def in_plain_words(message: str) -> Plain:
    """Return a broker's message in plain words, on its own if nothing is known about it."""
    text = message.strip().removesuffix(".")
    if value := re.fullmatch(_VALUE, text):
        return Plain(f"{value['name']}={value['value']}: {_reason(value['value'], value['why'])}")
    for pattern, words, hint in _MESSAGES:
        if found := re.fullmatch(pattern, text):
            return Plain(found.expand(words), hint and found.expand(hint))
    return Plain(message)


def _reason(value: str, why: str) -> str:
    for pattern, words in _REASONS:
        if found := re.fullmatch(pattern, why):
            choices = found[1].split(", ") if "one of" in words else ()
            if words == "must be a whole number" and re.fullmatch(r"[+-]?\d+", value):
                return "the number is too large"
            return found.expand(words) + did_you_mean(value, choices)
    return why[:1].lower() + why[1:]
