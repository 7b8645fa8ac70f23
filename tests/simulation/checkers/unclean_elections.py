"""Only a topic with unclean.leader.election.enable has a leader that lacks records, and it loses records only by such an election.

`identical_replicas` judges that its replicas are equal in the end; here that the log is whole: every offset once, nothing that nobody sent,
nothing twice.
"""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    known = history.unclean
    found = list(known.elsewhere)
    if known.bounds is None:
        return found
    offsets = [offset for offset, _ in known.log]
    if offsets != list(range(*known.bounds)):
        found.append(
            f"there are the offsets {offsets[:5]}…{offsets[-5:]} between {known.bounds[0]} and {known.bounds[1]}"
        )
    values = [value for _, value in known.log]
    found += [f"{value!r} is there, and nobody sent it" for value in values if value not in known.sent]
    found += [f"{value!r} is there twice" for value in {*values} if values.count(value) > 1]
    if not known.elections:
        found += [f"{value!r} is lost without an unclean election" for value in known.lost]
    return found
