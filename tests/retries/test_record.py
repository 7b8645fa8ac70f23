from dataclasses import FrozenInstanceError

import pytest

from barnabas.retries.record import Output, Record


def test_a_function_cannot_change_what_is_forwarded() -> None:
    record = Record("orders", 0, 1, 2, b"k", b"v")
    with pytest.raises(FrozenInstanceError):
        record.value = b"w"  # type: ignore[misc]
    assert (record.attempt, record.headers, Output("bills", b"v").partition) == (1, (), None)
