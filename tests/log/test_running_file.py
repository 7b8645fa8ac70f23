"""The file of a run: written whole or not at all, and believed only where it was written."""

from __future__ import annotations

import json

import pytest

from barnabas.log import running_file
from barnabas.log.running_file import RUNNING_FILE, Claim
from barnabas.simulation.disk import SimDisk
from tests.log.story import ROOT, running

EPOCH = 42
PATH = f"{ROOT}/{RUNNING_FILE}"
LOG = f"{ROOT}/orders-0/00000000000000000000.log"


def test_where_files_have_no_identity_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk()
    running(disk, EPOCH)
    monkeypatch.setattr(SimDisk, "identity", lambda self, path: None)
    assert running_file.read(disk, ROOT) == Claim(-1, "the file system does not tell a file from its copy")
    running_file.write(disk, ROOT, EPOCH + 1)
    assert not disk.exists(PATH), "a file of an older run would be no better"


def test_a_kill_at_any_call_leaves_the_former_file_or_the_new_one() -> None:
    def files(disk: SimDisk) -> Claim:
        return running_file.read(disk, ROOT)

    class Killed(Exception):
        pass

    counted = SimDisk()
    running(counted, EPOCH)
    before = counted.calls
    running_file.write(counted, ROOT, EPOCH + 1)
    for number in range(counted.calls - before):
        for end in (SimDisk.kill, SimDisk.crash):
            disk = SimDisk(number)
            running(disk, EPOCH)
            left = iter(range(number))

            def dies(call: str, path: str, left: object = left) -> OSError | None:
                if next(left, None) is None:  # type: ignore[call-overload]
                    raise Killed
                return None

            disk.on_call = dies
            with pytest.raises(Killed):
                running_file.write(disk, ROOT, EPOCH + 1)
            disk.on_call = None
            disk.last_write = None  # none of them is torn: it had ended
            end(disk)
            assert files(disk).broker_epoch in ((EPOCH, EPOCH + 1) if end is SimDisk.kill else (-1,))
            running_file.write(disk, ROOT, EPOCH + 2)
            assert files(disk) == Claim(EPOCH + 2), "what the kill has left is not in the way"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 1),
        ("brokerEpoch", None),
        ("brokerEpoch", -1),
        ("brokerEpoch", True),
        ("brokerEpoch", 2**63),
        ("bootId", 7),
        ("mount", "1"),
        ("inode", None),
        ("birthNs", 1.5),
    ],
)
def test_a_damaged_file_claims_nothing(field: str, value: object) -> None:
    disk = SimDisk()
    running(disk, EPOCH)
    fields = json.loads(disk.contents(PATH))
    assert list(fields) == ["version", "brokerEpoch", "bootId", "mount", "inode", "birthNs"]
    content = json.dumps(fields | {field: value}).encode()
    for damaged in (
        content,
        b"",
        b"{",
        b"7",
        b"\xff",
        json.dumps({key: fields[key] for key in fields if key != field}).encode(),
    ):
        file = disk.open(PATH)
        file.truncate(0)
        file.pwrite(damaged, 0)
        assert running_file.read(disk, ROOT) == Claim(-1, f"{RUNNING_FILE} is damaged")
