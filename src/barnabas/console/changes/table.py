"""Every change that the console offers, with its address under `/clusters/NAME/change/` and the page that leads to it."""

from __future__ import annotations

from barnabas.console.changes import (
    acls,
    again,
    dead_letters,
    groups,
    quotas,
    records,
    replay,
    settings,
    several_records,
    topics,
    transactions,
    trimming,
    users,
)
from barnabas.console.changes.change import Change

_OF_TOPIC = ("name", "name")
_OF_GROUP = ("id", "id")

CHANGES = (
    Change("topic-create", "Create a topic", "topics", None, topics.CREATION_FIELDS, topics.creation),
    Change(
        "record-produce",
        "Produce a record",
        "topic",
        ("name", "topic"),
        records.FIELDS,
        records.production,
        also={"messages": ("topic", "topic"), "record": ("topic", "topic")},
    ),
    Change(
        "records-produce",
        "Produce several records",
        "topic",
        ("name", "topic"),
        several_records.FIELDS,
        several_records.production,
        also={"messages": ("topic", "topic")},
        reads_records=True,
    ),
    Change(
        "record-again",
        "Again, with changes",
        "messages",
        ("topic", "topic"),
        records.FIELDS,
        records.production,
        also={"record": ("topic", "topic")},
        carries=("partition", "offset"),
        fill=again.filled,
    ),
    Change(
        "topic-settings", "Change settings", "topic", _OF_TOPIC, settings.fields_of("Topic"), settings.topic_settings
    ),
    Change("topic-grow", "Add partitions", "topic", _OF_TOPIC, topics.GROWTH_FIELDS, topics.growth),
    Change("topic-trim", "Delete the oldest records", "topic", _OF_TOPIC, trimming.FIELDS, trimming.trim),
    Change(
        "replay",
        "Replay to another topic",
        "topic",
        ("name", "topic"),
        replay.FIELDS,
        replay.replay,
        also={"messages": ("topic", "topic")},
        refuse=replay.refuse_telling,
        reads_records=True,
    ),
    Change("topic-delete", "Delete the topic", "topic", _OF_TOPIC, topics.DELETION_FIELDS, topics.deletion),
    Change("group-reset", "Reset offsets", "group", _OF_GROUP, groups.RESET_FIELDS, groups.reset),
    Change(
        "group-settings",
        "Change settings of the group",
        "group",
        ("id", "name"),
        settings.fields_of("Group"),
        settings.group_settings,
    ),
    Change(
        "group-delete-offsets",
        "Delete offsets of topics",
        "group",
        _OF_GROUP,
        groups.OFFSETS_FIELDS,
        groups.offsets_deletion,
    ),
    Change("group-delete", "Delete the group", "group", _OF_GROUP, groups.DELETION_FIELDS, groups.deletion),
    Change(
        "transaction-abort",
        "Abort a transaction",
        "transactions",
        None,
        transactions.ABORT_FIELDS,
        transactions.abort,
    ),
    Change(
        "transaction-abort-hanging",
        "Abort a hanging transaction",
        "transactions",
        None,
        transactions.HANGING_FIELDS,
        transactions.hanging_abort,
    ),
    Change(
        "dead-letter-redrive",
        "Redrive dead letters",
        "dead-letters",
        ("topic", "topic"),
        dead_letters.FIELDS,
        dead_letters.redrive,
        refuse=dead_letters.refuse_telling,
        reads_records=True,
    ),
    Change(
        "broker-settings",
        "Change settings of a broker",
        "cluster",
        None,
        settings.fields_of("Broker"),
        settings.broker_settings,
    ),
    Change("quota-set", "Set quotas", "quotas", None, quotas.SET_FIELDS, quotas.setting),
    Change("quota-delete", "Delete quotas", "quotas", None, quotas.DELETION_FIELDS, quotas.deletion),
    Change("user-create", "Create a user", "users", None, users.CREATION_FIELDS, users.creation),
    Change("user-password", "Change a password", "users", None, users.PASSWORD_FIELDS, users.password),
    Change("user-delete", "Delete a user", "users", None, users.DELETION_FIELDS, users.deletion),
    Change("acl-create", "Create an ACL", "acls", None, acls.CREATION_FIELDS, acls.creation),
    Change("acl-delete", "Delete ACLs", "acls", None, acls.DELETION_FIELDS, acls.deletion),
)
"""In the order in which a page offers them."""
