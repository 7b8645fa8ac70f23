"""Settings of a topic, a group or a broker: `barnabas config alter`."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.cli.config import altered, check_are_known
from barnabas.cli.done import Done
from barnabas.cli.failure import failure_of
from barnabas.cli.output import found_rows
from barnabas.client.admin import Admin, ConfigChange, ConfigResource, ResourceType, result
from barnabas.client.configs import ConfigOperation
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.changes.topics import described
from barnabas.console.page import Field
from barnabas.protocol.errors import KafkaError
from barnabas.words.printable import printable

_DELETES_RECORDS = frozenset(("cleanup.policy", "retention.bytes", "retention.ms"))
"""Settings by which a topic loses records; the cluster deletes them within minutes."""
_PAGES = {ResourceType.TOPIC: ("topic", "name"), ResourceType.GROUP: ("group", "id")}


def fields_of(noun: str) -> tuple[Field, ...]:
    """Return the fields of a form about settings."""
    return (
        Field("name", noun, is_required=True),
        # A broker has settings that are secrets; the audit log has the values from `before`.
        Field("set", "Set, a line each", kind="lines", hint="NAME=VALUE", is_private=True),
        Field("delete", "Back to the default, a line each", kind="lines", hint="NAME"),
    )


def topic_settings(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan other settings of a topic."""
    described(admin, given.required("name", "the name of the topic"))
    return _settings(admin, given, ResourceType.TOPIC)


def group_settings(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan other settings of a group."""
    name = given.required("name", "the name of the group")
    result(admin.describe_groups([name])[name])
    return _settings(admin, given, ResourceType.GROUP)


def broker_settings(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan other settings of a broker that runs."""
    text = given.text("name").strip()
    if not (text.isascii() and text.isdigit()):
        raise BadForm(f"a broker is named by its id, such as 0, not by “{printable(text[:40])}”")
    check_are_known(given.pairs("set"))
    return _settings(admin, Given({**given.texts, "name": text}), ResourceType.BROKER)


def _settings(admin: Admin, given: Given, kind: ResourceType) -> Planned:
    noun = kind.name.lower()
    name = given.required("name", f"the name of the {noun}")
    changes = [ConfigChange(key, value) for key, value in given.pairs("set").items()]
    changes += [ConfigChange(key.strip(), None, ConfigOperation.DELETE) for key in given.lines("delete")]
    if not changes:
        raise BadForm("no setting is named")
    resource = ConfigResource(kind, name)
    now = _now(admin, resource, changes)
    preview = altered(admin, [resource], changes, dry_run=True).whole()
    deletes = kind is ResourceType.TOPIC and any(each.name in _DELETES_RECORDS for each in changes)
    if deletes:
        preview = preview._replace(
            notes=[*preview.notes, "the topic may lose the records that these settings do not keep"]
        )
    path, parameter = _PAGES.get(kind, ("cluster", ""))
    return Planned(
        f"Change settings of {noun} {printable(name)}",
        f"{noun} {name}",
        preview,
        lambda admin, _: altered(admin, [resource], changes, dry_run=False),
        before=[("configs", "Values now and then", now)],
        destroys=name if deletes else None,
        basis=now.found.data,
        after=(path, {parameter: name} if parameter else {}),
    )


def _now(admin: Admin, resource: ConfigResource, changes: Sequence[ConfigChange]) -> Done:
    found = admin.describe_configs([resource])[resource]
    if isinstance(found, KafkaError):
        raise failure_of(found, f"{resource.type.name.lower()} {resource.name}")
    entries = {each.name: each for each in found}
    rows = []
    for each in changes:
        entry = entries.get(each.name)
        before = None if entry is None else "(hidden)" if entry.sensitive else entry.value
        # A broker accepts names that it does not describe, of its plugins.
        is_secret = entry.sensitive if entry is not None else resource.type is ResourceType.BROKER
        hidden = is_secret and each.value is not None
        after = "(hidden)" if hidden else each.value if each.value is not None else "(the default)"
        rows.append((each.name, before, None if entry is None else entry.source.name, after))
    return Done(found_rows(("KEY", "VALUE", "SOURCE", "NEW-VALUE"), rows))
