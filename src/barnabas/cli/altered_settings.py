"""Changes of settings, checked before they are sent: a broker accepts the deletion of any name, even of an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.admin import Admin, ConfigChange, ConfigEntry, ConfigResource, ConfigSource, ResourceType
from barnabas.client.configs import OWN_SOURCES, ConfigOperation
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.settings_table import near_setting, rows

_REMOVING = (ConfigOperation.DELETE, ConfigOperation.SUBTRACT)


class Altered(NamedTuple):
    """The outcome of changes to one resource.

    Attributes:
        changed: names of settings.
        unchanged: for each change that changes nothing, why.
    """

    changed: list[str]
    unchanged: list[str]

    def status(self, *, dry_run: bool) -> str:
        """Return what people read of it."""
        changed = f"{'would be ' if dry_run else ''}changed: {', '.join(self.changed)}"
        if not self.changed:
            changed = "unchanged"
        return "; ".join((changed, *self.unchanged))


def alter(
    admin: Admin, resources: Iterable[ConfigResource], changes: Sequence[ConfigChange], *, dry_run: bool
) -> dict[ConfigResource, Altered | KafkaError]:
    """Change settings of each resource, unless one of them is to be removed and does not exist."""
    wanted = list(dict.fromkeys(resources))
    removing = any(each.operation in _REMOVING for each in changes)
    described = admin.describe_configs(wanted) if removing else {}
    outcomes: dict[ConfigResource, Altered | KafkaError] = {}
    for resource in wanted:
        entries = described.get(resource, [])
        # A resource that is not described is not altered either, or the broker says why.
        known = [] if isinstance(entries, KafkaError) or not removing else list(_checked(resource, entries, changes))
        outcomes[resource] = _summed_up(changes, dict(known))
    sent = {each: changes for each in wanted if isinstance(outcomes[each], Altered)}
    failed = admin.alter_configs(sent, validate_only=dry_run)
    return {each: failed.get(each) or outcome for each, outcome in outcomes.items()}


def _checked(
    resource: ConfigResource, entries: list[ConfigEntry], changes: Sequence[ConfigChange]
) -> Iterable[tuple[ConfigChange, str | KafkaError]]:
    """Yield the changes that change nothing, each with why."""
    own = OWN_SOURCES.get(resource.type)
    if resource.type is ResourceType.BROKER and not resource.name:
        own = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    there: Mapping[str, ConfigEntry] = {each.name: each for each in entries}
    scope = resource.type.name.lower().replace("_", "-")
    names = {row.name for row in rows() if row.scope == scope}
    for change in changes:
        entry = there.get(change.name)
        if own is None or change.operation not in _REMOVING:
            continue
        if entry is None and change.name not in names:
            yield change, _unknown(scope, change.name)
        elif change.operation is ConfigOperation.DELETE and (entry is None or entry.source is not own):
            yield change, f"{change.name} was not set"
        elif change.operation is ConfigOperation.SUBTRACT and entry is not None and entry.type == "list":
            parts = _parts(entry.value)
            if not parts & _parts(change.value):
                yield change, f"{change.name} has no {change.value}"


def _unknown(scope: str, name: str) -> KafkaError:
    # As a broker says it when the name is to be set; brokers accept any name of their own.
    sentence = f"Unknown {scope} config name: {name}"
    if scope not in ("topic", "group"):
        sentence = f"there is no {scope} setting {name}{near_setting(scope, name)}"
    return error_for(ErrorCode.INVALID_CONFIG, sentence)


def _parts(text: str | None) -> set[str]:
    return {part.strip() for part in (text or "").split(",") if part.strip()}


def _summed_up(changes: Sequence[ConfigChange], known: Mapping[ConfigChange, str | KafkaError]) -> Altered | KafkaError:
    for found in known.values():
        if isinstance(found, KafkaError):
            return found
    return Altered([each.name for each in changes if each not in known], [str(why) for why in known.values()])
