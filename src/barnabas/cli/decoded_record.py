"""A record as an object of JSON, with the fields of Kafka's record types where its topic is an internal one.

A record that this release does not know, and every record of another topic, is as `json` prints it.
"""

from __future__ import annotations

from barnabas.cli.record_format import Shown, json_object
from barnabas.decoding.internal_topics import INTERNAL_TOPICS, key_of, value_of
from barnabas.spark.decoding.bad_value import BadValue


def decoded_object(shown: Shown) -> dict[str, object]:
    """Return the fields of a record's line of JSON."""
    if shown.topic not in INTERNAL_TOPICS or shown.key is None:
        return json_object(shown)
    try:
        key = key_of(shown.topic, shown.key)
        value = None if shown.value is None else value_of(shown.topic, shown.key, shown.value)
    except BadValue:
        return json_object(shown)
    whole = json_object(shown._replace(key=None, value=None))
    return {**whole, "key": key, "value": value}
