"""`shop run`: what its user reads when the page of the metrics cannot be served."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from shop.project import ProjectError
from shop.run import _serve_metrics


def test_a_port_that_is_taken_is_one_line():
    spark: Any = None  # not asked before the page listens
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ProjectError) as raised:
            _serve_metrics(spark, port)
    assert str(raised.value) == f"cannot serve metrics on 127.0.0.1:{port}: address already in use; choose another port"
