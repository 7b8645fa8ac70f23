"""Bytes under a path, on Linux and elsewhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from barnabas.security.memory_files import path_of

DATA = bytes(range(256)) * 4096
WAYS = [True] if sys.platform != "linux" else [False, True]


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize("by_pipe", WAYS)
def test_the_path_has_the_bytes(by_pipe: bool) -> None:
    with path_of(DATA, by_pipe=by_pipe) as path:
        assert Path(path).read_bytes() == DATA


@pytest.mark.parametrize("by_pipe", WAYS)
def test_nothing_is_left_open_even_if_nobody_has_read(by_pipe: bool) -> None:
    before = open_descriptors()
    for _ in range(3):
        with path_of(DATA, by_pipe=by_pipe):
            pass
    assert open_descriptors() == before


@pytest.mark.skipif(sys.platform != "linux", reason="files in memory are Linux's")
def test_a_file_in_memory_has_no_name_on_a_disk() -> None:
    with path_of(b"key") as path:
        assert os.readlink(path).startswith("/memfd:")
