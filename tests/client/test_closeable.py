"""A `with` block closes what it opened, however it is left."""

import pytest

from barnabas.client.closeable import Closeable


class Counted(Closeable):
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_with_block_hands_out_the_thing_and_closes_it() -> None:
    with Counted() as counted:
        assert counted.closed == 0
    assert counted.closed == 1


def test_an_exception_passes_through_a_closing_block() -> None:
    counted = Counted()
    with pytest.raises(ZeroDivisionError), counted:
        raise ZeroDivisionError
    assert counted.closed == 1
