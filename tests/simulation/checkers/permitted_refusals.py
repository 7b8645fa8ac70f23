"""A transactional producer, the only one of its id, is refused only what the faults explain.

Permitted are:

- "Not yet" for longer than the producer is patient: the coordinator or the leader may be gone for so long.
- `FENCED`, if another InitProducerId of the same id may have come between: one whose answer was lost may be carried out late. The
  coordinator fences too when a transaction is open for longer than its timeout.
- What a leader answers that has been replaced while it was cut off, as in Kafka. It verifies with a coordinator that has been replaced,
  too, and does not know the producer's epoch: INVALID_PRODUCER_EPOCH. Or it takes a late marker of the transaction before, which another
  leader has long taken, while it verifies a batch of the next one: INVALID_TXN_STATE (seed 253676881).
- What a coordinator answers that has been replaced while it was cut off, and that the producer still reaches, as in Kafka: it does not
  know the transaction that leaders have begun with the next coordinator, and its end is INVALID_TXN_STATE (seed 7001358).

Everything else is a violation. INVALID_TXN_STATE says that the coordinator has forgotten what it acknowledged, or remembers what never was;
OUT_OF_ORDER_SEQUENCE_NUMBER that a leader has lost records of the producer, or the aborted rest of a transaction that it took for ended.
Nothing is judged after a power cut that took unflushed writes: a coordinator may then know less than its producers.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from tests.simulation.history import History
from tests.simulation.transactions import AGAIN

FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
OF_THE_REPLACED = FENCED | {ErrorCode.INVALID_TXN_STATE}


def check(history: History) -> list[str]:
    if history.lost_unflushed_writes:
        return []
    return [
        f"{producer} was refused without a cause: {code.name}"
        for producer, code, may_be_fenced, is_of_the_replaced in history.refusals
        if code not in AGAIN
        and not (may_be_fenced and code in FENCED)
        and not (is_of_the_replaced and code in OF_THE_REPLACED)
    ]
