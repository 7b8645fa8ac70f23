"""ListTransactions (API key 66, versions 0-2): the transactional ids that this broker coordinates.

- Filters by state, producer id, age of the transaction and pattern of the id; an empty filter matches all.
- The response lists unknown state names; they match nothing.
- The pattern is an RE2 expression for the whole id; an invalid one is INVALID_REGULAR_EXPRESSION. The executor matches it.
- COORDINATOR_LOAD_IN_PROGRESS while the coordinator loads any partition.

Version 0 is flexible, 1 adds the duration filter (KIP-994), 2 the pattern (KIP-1152).
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ListTransactionsRequest, ListTransactionsResponse
from barnabas.regular_expressions import InvalidExpression, RegularExpression, compiled
from barnabas.transaction.transaction_metadata import TransactionMetadata
from barnabas.transaction.transaction_state import BY_TITLE, TransactionState
from barnabas.turns import ELEMENT, RECORD, pace


async def handle(context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List the transactional ids that the filters match."""
    pattern = _compiled(request.transactional_id_pattern)
    states: set[TransactionState] = set()
    unknown: dict[str, None] = {}
    for name in request.state_filters:
        await pace(RECORD)
        if name in BY_TITLE:
            states.add(BY_TITLE[name])
        else:
            unknown[name] = None
    producer_ids = frozenset(request.producer_id_filters)
    now_ms = context.services.now_ms()

    def is_wanted(found: TransactionMetadata) -> bool:
        if producer_ids and found.producer_id not in producer_ids:
            return False
        if request.state_filters and found.state not in states:
            return False
        return request.duration_filter < 0 or now_ms - found.start_ms > request.duration_filter

    try:
        transactions = await context.services.transaction_coordinator.list_all()
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    matching = None if pattern is None else await _matching(context, pattern, transactions)
    response = ListTransactionsResponse(unknown_state_filters=list(unknown))
    for found in transactions:
        await pace(ELEMENT)
        if is_wanted(found) and (matching is None or found.transactional_id in matching):
            response.transaction_states.append(
                ListTransactionsResponse.TransactionState(
                    transactional_id=found.transactional_id,
                    producer_id=found.producer_id,
                    transaction_state=found.state.title,
                )
            )
    return response


def _compiled(pattern: str | None) -> RegularExpression | None:
    if not pattern:
        return None
    try:
        return compiled(pattern)
    except InvalidExpression as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"Transaction ID pattern `{pattern}` is not a valid regular expression: {error}.",
        ) from None


async def _matching(
    context: RequestContext, pattern: RegularExpression, transactions: Sequence[TransactionMetadata]
) -> frozenset[str]:
    """Match all ids in the executor: an id may have 32,767 bytes, and a match of it may take milliseconds."""

    def match() -> frozenset[str]:
        ids = (found.transactional_id for found in transactions)
        return frozenset(transactional_id for transactional_id in ids if pattern.matches(transactional_id))

    return await context.services.loop.run_in_executor(None, match)
