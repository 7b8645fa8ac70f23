"""Why a mirror stops."""

from __future__ import annotations

from barnabas.mirror.stopped import MirrorStopped


def test_it_says_what_to_do() -> None:
    stopped = MirrorStopped("the target has lost records", "begin another mirror")
    assert (str(stopped), stopped.hint) == ("the target has lost records", "begin another mirror")
