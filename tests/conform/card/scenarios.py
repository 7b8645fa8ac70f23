"""The scenarios in the order of the card, each a function of a stage; its docstring's first line is what the card says it shows."""

from __future__ import annotations

from collections.abc import Callable

from tests.conform.card import administration, groups, records, transactions
from tests.conform.card.stage import Stage

Scenario = Callable[[Stage], None]

SCENARIOS: dict[str, Scenario] = {
    "codecs": records.codecs,
    "batches": records.batches,
    "positions": records.positions,
    "times": records.times,
    "compaction": records.compaction,
    "restart": records.restart,
    "classic group": groups.classic_group,
    "static member": groups.static_member,
    "consumer group": groups.consumer_group,
    "share group": groups.share_group,
    "transactions": transactions.commit_and_abort,
    "fencing": transactions.fencing,
    "transaction timeout": transactions.timeout,
    "offsets in transaction": transactions.offsets_in_transaction,
    "topics": administration.topics,
    "configs": administration.configs,
    "deleted records": administration.deleted_records,
    "group administration": administration.group_administration,
    "quota": administration.quota,
}


def shows(scenario: str) -> str:
    """The first line of the scenario's docstring."""
    text = SCENARIOS[scenario].__doc__
    assert text, scenario
    return text.strip().splitlines()[0]
