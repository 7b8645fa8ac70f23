"""read_committed readers see a transaction in every partition that it wrote to, or in none; as acknowledged, and with its offset.

After a power cut that took unflushed writes a commit may have lost a part of itself. Then only that no reader waits for ever is judged.
"""

from __future__ import annotations

from tests.simulation.history import History, Partition, Transaction


def check(history: History) -> list[str]:
    found = list(history.held_back)
    if history.lost_unflushed_writes:
        return found
    by_name: dict[str, list[Transaction]] = {}
    for transaction in history.transactions:
        by_name.setdefault(transaction.producer, []).append(transaction)
        seen = {where for where, values in history.final_committed.items() if transaction.value in values}
        found += judge(transaction, seen)
    for where, seen_values in history.seen_committed.items():
        gone = seen_values - set(history.final_committed.get(where, ()))
        found += [f"{value!r} was seen in {where} and is not committed" for value in sorted(gone)]
    for values in history.final_committed.values():
        found += [f"{value!r} is there twice" for value in {*values} if values.count(value) > 1]
    for name, offset in history.final_transactional_offsets.items():
        expected = [
            each.number
            for each in by_name.get(name, [])
            if each.has_offset and any(each.value in values for values in history.final_committed.values())
        ]
        if offset != max(expected, default=-1):
            found.append(f"{name} has offset {offset}, its transactions say {max(expected, default=-1)}")
    return found


def judge(transaction: Transaction, seen: set[Partition]) -> list[str]:
    what = f"transaction {transaction.value!r}"
    whole = set(transaction.partitions)
    if seen and seen != whole:
        return [f"{what} is torn: {sorted(seen)} of {sorted(whole)}"]
    if seen and not transaction.is_commit:
        return [f"{what} is seen and was not to be committed"]
    if not seen and transaction.is_commit and transaction.acknowledged and whole:
        return [f"{what} is lost"]
    return []
