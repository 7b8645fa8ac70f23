"""The socket of the console; `test_command` has its process."""

import pytest

from barnabas.console.serving import listening_socket


def test_a_port_that_is_taken() -> None:
    with listening_socket("127.0.0.1", 0) as first, pytest.raises(OSError, match="in use"):
        listening_socket("127.0.0.1", first.getsockname()[1])
