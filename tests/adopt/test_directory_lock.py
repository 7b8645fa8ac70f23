"""Who has a directory, asked without taking it; and two commands at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.adopt.directory_lock import OneAtATime, TakenTwice, holder_of
from barnabas.log.directory_lock import LOCK_FILE

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_who_has_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / LOCK_FILE
    assert holder_of(str(tmp_path)) is None
    lock.touch()
    assert holder_of(str(tmp_path)) is None
    words = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert holder_of(str(tmp_path)) == holder.pid
        assert holder_of(str(tmp_path)) == holder.pid, "the question has not taken the lock"
        holder.communicate()
    assert holder_of(str(tmp_path)) is None


def test_two_commands_on_a_directory(tmp_path: Path) -> None:
    with OneAtATime(str(tmp_path)):
        with pytest.raises(TakenTwice):
            OneAtATime(str(tmp_path))
        assert os.listdir(tmp_path) == []
    with OneAtATime(str(tmp_path)):
        pass


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        OneAtATime(str(tmp_path / "away"))
