"""Groups: `barnabas group reset-offsets`, `group delete-offsets` and `group delete`."""

from __future__ import annotations

from typing import Any

from barnabas.cli.done import Done
from barnabas.cli.group import deleted_groups
from barnabas.cli.group_delete_offsets import deleted_offsets
from barnabas.cli.group_reset import Move, moved, planned_moves, require_inactive
from barnabas.client.admin import Admin
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import INT_64_MAX, BadForm, Given
from barnabas.console.page import Field
from barnabas.words.printable import printable

GROUP = Field("id", "Group", is_required=True)
_TOPICS = Field("topics", "Topics, a line each", kind="lines", hint="every topic; or orders:0,3")
_PLACES = {
    "--to-earliest": "the start of the log",
    "--to-latest": "the end of the log",
    "--to-offset": "an offset",
    "--shift-by": "a number of records on, or back",
    "--to-datetime": "a time",
    "--by-duration": "a duration ago",
}
RESET_FIELDS = (
    GROUP,
    _TOPICS,
    Field("how", "Read on at", kind="choice", choices=tuple(_PLACES.items())),
    Field("value", "Offset, number, time or duration", hint="47, -100, 2026-11-21T10:00:00, -1h, 1h30m"),
    Field("plan", "Offsets of the preview", kind="hidden"),
)
OFFSETS_FIELDS = (GROUP, _TOPICS._replace(hint="orders, or orders:0,3", is_required=True))
DELETION_FIELDS = (GROUP,)


def reset(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan new offsets of a group; the preview fixes them."""
    group_id = given.required("id", "the group")
    how = given.choice("how", "the place", _PLACES)
    value: Any = given.text("value").strip()
    if how in ("--to-offset", "--shift-by"):
        least = 0 if how == "--to-offset" else -INT_64_MAX
        value = given.number("value", "the number", least=least, most=INT_64_MAX)
    if value in (None, ""):
        if how not in ("--to-earliest", "--to-latest"):
            raise BadForm(f"{_PLACES[how]} is missing")
        value = True
    exists = require_inactive(admin, group_id)
    plan = given.lines("plan")
    try:
        if plan:
            moves = planned_moves(admin, group_id, "--from-file", plan, None, now_ms)
        else:
            moves = planned_moves(admin, group_id, how, value, given.lines("topics") or None, now_ms)
    except ValueError as error:
        raise BadForm(str(error)) from None
    preview = moved(admin, group_id, moves, exists=exists, execute=False)
    if not exists:
        preview = preview._replace(notes=[f"group {group_id} does not exist, and would be created"])
    return Planned(
        f"Reset offsets of group {printable(group_id)}",
        f"group {group_id}",
        preview,
        lambda admin, _: moved(admin, group_id, moves, exists=exists, execute=True),
        fixed={"plan": "\n".join(map(_line, moves))},
        after=("group", {"id": group_id}),
    )


def _line(move: Move) -> str:
    return f"{move.where.topic},{move.where.partition},{move.offset}"


def offsets_deletion(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan that a group forgets what it committed in topics."""
    group_id = given.required("id", "the group")
    topics = given.lines("topics")
    if not topics:
        raise BadForm("no topic is named")

    def done(admin: Admin, *, dry_run: bool) -> Done:
        try:
            return deleted_offsets(admin, group_id, topics, dry_run=dry_run)
        except ValueError as error:
            raise BadForm(str(error)) from None

    return Planned(
        f"Delete offsets of group {printable(group_id)}",
        f"group {group_id}",
        done(admin, dry_run=True).whole(),
        lambda admin, _: done(admin, dry_run=False),
        destroys=group_id,
        after=("group", {"id": group_id}),
    )


def deletion(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan the end of a group without members."""
    group_id = given.required("id", "the group")
    return Planned(
        f"Delete group {printable(group_id)} and its offsets",
        f"group {group_id}",
        deleted_groups(admin, [group_id], dry_run=True).whole(),
        lambda admin, _: deleted_groups(admin, [group_id], dry_run=False),
        destroys=group_id,
        after=("groups", {}),
    )
