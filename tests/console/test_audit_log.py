"""Lines of the audit log."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from barnabas.console.audit_log import AuditLog, BadAuditLog, Entry

ENTRY = Entry("alice", "127.0.0.1", "local", "topic-delete", "topic <b>\n\x1b", {"name": "é\u202e"}, {"topic": [1]})
COMMON = {"time": "1970-01-01T00:00:01.000Z", "who": "alice", "from": "127.0.0.1", "cluster": "local",
          "change": "topic-delete", "on": "topic <b>\n\x1b"}  # fmt: skip


def test_two_lines_in_a_file_that_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    log = AuditLog(str(path), lambda: 1_000)
    log.check()
    identity = log.begin(ENTRY)
    log.end(identity, ENTRY, [{"topic": "t"}], None)
    log.end(identity, ENTRY, [], "Not done.")
    text = path.read_text()
    assert text.isascii()
    assert "\x1b" not in text
    begun, done, failed = map(json.loads, text.splitlines())
    assert begun == {**COMMON, "id": identity, "what": {"name": "é\u202e"}, "topic": [1], "result": "begun"}
    assert done == {**COMMON, "id": identity, "result": "done", "rows": [{"topic": "t"}]}
    assert failed == {**COMMON, "id": identity, "result": "failed", "rows": [], "error": "Not done."}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_pipe_and_the_programs_log(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        AuditLog(str(tmp_path / "pipe")).begin(ENTRY)
        assert json.loads(os.read(reader, 10_000))["result"] == "begun"
    finally:
        os.close(reader)
    with caplog.at_level(logging.INFO):
        AuditLog().begin(ENTRY)
    assert json.loads(caplog.messages[-1])["result"] == "begun"


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    for path, why in (
        (tmp_path, "is a directory"),
        (tmp_path / "absent" / "audit", "no such file"),
        (Path("/dev/full"), "no space left"),
    ):
        with pytest.raises(BadAuditLog, match=why):
            AuditLog(str(path)).begin(ENTRY)
