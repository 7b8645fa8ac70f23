"""`barnabas storage`, inside this process: what it prints and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.primitives import uuid_from_str
from barnabas.server.storage_commands import run_storage


def test_a_random_uuid_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_storage(["random-uuid"]) == 0
    assert len(uuid_from_str(capsys.readouterr().out.strip())) == 16


def test_format_and_info(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "data")
    assert run_storage(["format", "--data-dir", data, "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAw", "-s"]) == 0
    assert capsys.readouterr().out == f"Formatted {data} for node 1 of cluster AAAAAAAAAAAAAAAAAAAAAw.\n"
    assert run_storage(["info", "--data-dir", data]) == 0
    assert "cluster.id=AAAAAAAAAAAAAAAAAAAAAw" in capsys.readouterr().out


def test_a_formatted_directory_is_rejected_or_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "data")
    assert run_storage(["format", "--data-dir", data]) == 0
    before = (tmp_path / "data" / "meta.properties").read_text()
    assert run_storage(["format", "--data-dir", data]) == 1
    assert (
        capsys.readouterr().err == f"error: log directory {data} is already formatted (--ignore-formatted skips it)\n"
    )
    assert run_storage(["format", "--data-dir", data, "--ignore-formatted"]) == 0
    assert capsys.readouterr().out == f"{data} is already formatted; skipped.\n"
    assert (tmp_path / "data" / "meta.properties").read_text() == before


def test_the_directory_may_come_from_a_properties_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path}/data\nnode.id=7\n")
    assert run_storage(["format", "--config", str(config)]) == 0
    assert "for node 7 of cluster" in capsys.readouterr().out


@pytest.mark.parametrize("action", ["format", "info"])
def test_without_a_directory_the_remedy_is_named(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run_storage([action])
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        "Usage: barnabas storage ACTION [OPTIONS]\n"
        "error: no data directory (pass --data-dir DIR, or set log.dirs in --config FILE)\n"
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["format", "--config", "nofile"], "cannot read nofile: No such file or directory"),
        (["format", "--data-dir", "file"], "file is a file, not a directory (pass another --data-dir)"),
        (["format", "--data-dir", "file/data"], "Not a directory (file/data)"),
        (["format", "--data-dir", "."], ". holds files that are not a broker's: file (pass another --data-dir)"),
        (["info", "--config", "."], "cannot read .: Is a directory"),
    ],
)
def test_a_failure_is_one_line_without_python(
    words: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    assert run_storage(words) == 1
    assert capsys.readouterr().err == f"error: {error}\n"


def test_a_mistyped_action_gets_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run_storage(["fromat"])
    assert end.value.code == 2
    assert capsys.readouterr().err.endswith("is not one of random-uuid, info, format; did you mean format?\n")


def test_a_directory_that_is_not_formatted_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_storage(["info", "--data-dir", str(tmp_path)]) == 1
    assert f"{tmp_path} is not formatted." in capsys.readouterr().out
