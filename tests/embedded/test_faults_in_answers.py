"""What the methods order, and what they say about it."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.embedded.fault_plan import EVERY_API, FaultKind, RequestFault, Where
from barnabas.embedded.fault_tickets import InjectedFault, OwnTickets
from barnabas.embedded.faults_in_answers import FaultsInAnswers, request_settings


class Noted(FaultsInAnswers):
    def _inject(self, fault: RequestFault, node: int | None) -> InjectedFault:
        self.ordered = (fault, node)
        return InjectedFault(1, request_settings(fault, node), OwnTickets(fault.times, fault.nth))


WHERE: dict[str, Any] = {"topic": "orders", "partition": 1, "client_id": "app", "group": "shop"}
CHOSEN = {**WHERE, "node": 2, "nth": 3}


@pytest.mark.parametrize(
    ("method", "arguments", "kind", "shown"),
    [
        ("fail", ("Produce", "NOT_LEADER_OR_FOLLOWER"), FaultKind.FAIL, {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}),
        ("drop_response_after_write", (), FaultKind.DROP_RESPONSE, {"api": "Produce"}),
        ("drop_connection", (1,), FaultKind.DROP_CONNECTION, {"api": "Fetch"}),
        ("delay_request", (None, 0.5), FaultKind.DELAY_REQUEST, {"seconds": 0.5}),
        ("delay_response", ("Fetch", 2), FaultKind.DELAY_RESPONSE, {"api": "Fetch", "seconds": 2.0}),
        ("duplicate_response", ("Fetch",), FaultKind.DUPLICATE_RESPONSE, {"api": "Fetch"}),
    ],
)  # fmt: skip
def test_every_kind(method: str, arguments: tuple[Any, ...], kind: FaultKind, shown: dict[str, Any]) -> None:
    noted = Noted()
    plain = getattr(noted, method)(*arguments)
    assert plain.settings == {"kind": str(kind), **shown, "times": 1}
    assert noted.ordered[0].where == Where()
    chosen = getattr(noted, method)(*arguments, times=None, **CHOSEN)
    assert chosen.settings == {"kind": str(kind), **shown, "times": None, **CHOSEN}
    fault, node = noted.ordered
    assert (fault.kind, fault.times, fault.nth, node) == (kind, -1, 3, 2)
    assert fault.where == Where(**WHERE)
    assert (fault.api_key == EVERY_API) is (arguments[:1] == (None,))


def test_mistakes_are_sentences() -> None:
    noted = Noted()
    with pytest.raises(ValueError, match="brokers serve no such API; did you mean Fetch"):
        noted.drop_connection("Fetsh")
    with pytest.raises(ValueError, match="seconds=-1: pass 0 or more"):
        noted.delay_response("Fetch", -1)
    with pytest.raises(ValueError, match="pass 1 for the next request"):
        noted.duplicate_response("Fetch", nth=0)
