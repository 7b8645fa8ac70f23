"""What happens in another thread while a block runs."""

from __future__ import annotations

import threading

import pytest

from barnabas.cli.long_blocks import if_longer_than


def test_a_long_block_sees_the_call_and_leaves_no_thread() -> None:
    called: list[threading.Thread] = []
    seen = threading.Event()

    def act() -> None:
        called.append(threading.current_thread())
        seen.set()

    with if_longer_than(0, act):
        assert seen.wait(30)
    assert len(called) == 1
    assert not called[0].is_alive()


@pytest.mark.parametrize("error", [None, ValueError])
def test_a_short_block_does_not(error: type[ValueError] | None) -> None:
    called: list[bool] = []
    before = threading.active_count()
    try:
        with if_longer_than(3600, lambda: called.append(True)):
            if error is not None:
                raise error
    except ValueError:
        assert error is not None
    assert called == []
    assert threading.active_count() == before
