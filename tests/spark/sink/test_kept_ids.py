"""The ids of a worker that is gone have one heir, and those of a worker that lives have none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.client.producer_transactions import Transaction
from barnabas.spark.sink import kept_ids
from barnabas.spark.sink.kept_ids import KeptId, KeptIds, folder_of_this_user

ONE = KeptId("h:1", "p/q", 4, Transaction("p/q/a/0", 71, 3))
TWO = KeptId("h:1", "p/q", 5, Transaction("p/q/a/1", 72, 0))


def anything(_: KeptId) -> bool:
    return True


def test_the_ids_of_a_worker_that_is_gone_are_adopted_once(tmp_path):
    first, second, third = (KeptIds(tmp_path, name) for name in "abc")
    first.save([ONE])
    first.save([ONE, TWO])
    first.close()
    assert second.adopt(anything) == [ONE, TWO]
    assert third.adopt(anything) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.ids", "c.ids"]


def test_a_worker_that_lives_keeps_its_ids(tmp_path):
    first, second = KeptIds(tmp_path, "a"), KeptIds(tmp_path, "b")
    first.save([ONE])
    assert second.adopt(anything) == []


def test_a_worker_that_is_killed_leaves_its_ids(tmp_path):
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from barnabas.spark.sink.kept_ids import KeptId, KeptIds\n"
        "from barnabas.client.producer_transactions import Transaction\n"
        "kept = KeptIds(Path(sys.argv[1]), 'a')\n"
        "kept.save([KeptId('h:1', 'p/q', 4, Transaction('p/q/a/0', 71, 3))])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False).returncode == -9
    assert KeptIds(tmp_path, "b").adopt(anything) == [ONE]


def test_ids_of_other_sinks_are_left_for_others(tmp_path):
    first, second = KeptIds(tmp_path, "a"), KeptIds(tmp_path, "b")
    first.save([ONE])
    first.close()
    assert second.adopt(lambda each: each.sink == "p/other") == []
    assert second.adopt(lambda each: each.sink == "p/q") == [ONE]


def test_a_worker_without_ids_leaves_no_file_for_ever(tmp_path):
    KeptIds(tmp_path, "a").close()
    second = KeptIds(tmp_path, "b")
    assert second.adopt(anything) == []
    assert [path.name for path in tmp_path.iterdir()] == ["b.ids"]


def test_a_file_that_is_removed_meanwhile_is_left_alone(tmp_path, monkeypatch):
    """Two workers open the file of a third: the second gets its lock when the first has removed it."""
    first, second, third = (KeptIds(tmp_path, name) for name in "abc")
    first.save([ONE])
    first.close()
    flock = kept_ids.fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        monkeypatch.undo()
        (tmp_path / "a.ids").unlink()

    monkeypatch.setattr(kept_ids.fcntl, "flock", late)
    assert second.adopt(anything) == []
    assert third.adopt(anything) == []


@pytest.mark.parametrize("text", [b"", b'{"version":1,"ids":[["h:1"', b'{"version":2,"ids":[]}', b"[]", b"7"])
def test_what_cannot_be_read_has_no_ids(tmp_path, text):
    (tmp_path / "a.ids").write_bytes(text)
    assert KeptIds(tmp_path, "b").adopt(anything) == []


def test_the_folder_belongs_to_this_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    folder = folder_of_this_user()
    assert folder is not None
    assert (folder.parent, folder.stat().st_mode & 0o777) == (tmp_path, 0o700)
    assert folder_of_this_user() == folder
    folder.chmod(0o770)
    assert folder_of_this_user() is None
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert folder_of_this_user() is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "absent"))
    assert folder_of_this_user() is None
