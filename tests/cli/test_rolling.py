"""The walk over nodes that do not answer for a while; `test_cluster_restart` has the rest."""

from __future__ import annotations

import pytest

from barnabas.client.admin import Quorum
from barnabas.protocol.errors import ErrorCode, error_for
from tests.cli.rolled_cluster import Rolled, run


class Old(Rolled):
    """Brokers that do not describe a quorum, nor list moves; after each restart the first look fails."""

    def describe_quorum(self) -> Quorum:
        raise error_for(ErrorCode.UNSUPPORTED_VERSION)

    def list_reassignments(self) -> dict[object, object]:  # type: ignore[override]
        raise error_for(ErrorCode.UNSUPPORTED_VERSION)

    def restart(self, words: list[str], node: int, within_s: float) -> None:
        super().restart(words, node, within_s)
        self.looks = 0

    def describe_partitions(self, names: object = None) -> dict[object, object]:  # type: ignore[override]
        self.looks += 1
        if self.restarted and self.looks == 1:
            raise error_for(ErrorCode.NOT_CONTROLLER, "no answer yet")
        return super().describe_partitions()  # type: ignore[return-value]


def test_a_look_that_fails_is_repeated() -> None:
    cluster = Old()
    result = run(cluster, "restart", "--command", "restart {node}")
    assert (result.exit_code, cluster.restarted) == (0, [1, 2, 3]), result.stderr


def test_before_the_first_restart_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Old()
    cluster.restarted = [0]
    result = run(cluster, "restart", "--command", "restart {node}")
    assert (result.exit_code, result.stderr.startswith("error: no answer yet")) == (1, True)
