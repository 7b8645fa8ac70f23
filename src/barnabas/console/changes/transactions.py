"""Open transactions: `barnabas txn abort`, by transactional id, or by place for one that no coordinator knows."""

from __future__ import annotations

from barnabas.cli.txn import aborted, aborted_hanging, partition_of
from barnabas.client.admin import Admin
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import INT_64_MAX, BadForm, Given
from barnabas.console.page import Field
from barnabas.words.printable import printable

ABORT_FIELDS = (Field("id", "Transactional id", is_required=True),)
HANGING_FIELDS = (
    Field("partition", "Partition", is_required=True, hint="orders:0"),
    Field("start_offset", "It begins at the offset", is_required=True),
)


def abort(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan the abort of a transaction, and that its producer is fenced."""
    name = given.required("id", "the transactional id")
    return Planned(
        f"Abort the transaction of {printable(name)}",
        f"transactional id {name}",
        aborted(admin, [name], dry_run=True).whole(),
        lambda admin, _: aborted(admin, [name], dry_run=False),
        destroys=name,
        after=("transactions", {}),
    )


def hanging_abort(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan an abort marker in one partition."""
    place = given.required("partition", "the partition").strip()
    offset = given.required_number("start_offset", "the offset", most=INT_64_MAX)
    try:
        partition = partition_of(place)
    except ValueError as error:
        raise BadForm(str(error)) from None
    return Planned(
        f"Abort the hanging transaction at offset {offset} of {printable(str(partition))}",
        f"partition {partition}",
        aborted_hanging(admin, partition, offset, dry_run=True).whole(),
        lambda admin, _: aborted_hanging(admin, partition, offset, dry_run=False),
        destroys=place,
        after=("transactions", {}),
    )
