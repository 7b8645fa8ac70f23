"""Which snapshots an Iceberg table keeps, so that a commit does not become slower with each batch.

A commit writes the table's metadata, with all of its snapshots. Of one snapshot a second there are 600,000 in a week, which is 400 MB that
every commit would write. So the writer takes out snapshots as it adds one, and keeps the last of

    each batch     of the last ten seconds
    each minute    of the last hour
    each hour      of the last day
    each day       before

Rows are not touched, and files stay until a vacuum, so that a query which reads a snapshot that is taken out reads on. Heads of branches
and tags stay. Only tables with the property `barnabas.thin-history` are thinned: those that the writer creates, until somebody removes it.
"""

from __future__ import annotations

from collections.abc import Iterable

THIN_HISTORY = "barnabas.thin-history"

_S = 1000
_STEPS = ((3600 * _S, 60 * _S), (86400 * _S, 3600 * _S))
_ALL_MS = 10 * _S
_DAY_MS = 86400 * _S


def to_take_out(snapshots: Iterable[tuple[int, int]], now_ms: int) -> list[int]:
    """Return the ids of the snapshots that a later one stands for.

    Args:
        snapshots: the id and the time of each, in ms.
    """
    newest: dict[tuple[int, int], int] = {}
    found = []
    for snapshot_id, at_ms in sorted(snapshots, key=lambda each: each[1]):
        age_ms = now_ms - at_ms
        if age_ms < _ALL_MS:
            continue
        span = next((span for limit, span in _STEPS if age_ms < limit), _DAY_MS)
        if (earlier := newest.get((span, at_ms // span))) is not None:
            found.append(earlier)
        newest[span, at_ms // span] = snapshot_id
    return found
