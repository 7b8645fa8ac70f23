"""Files of 10 MiB through a topic that takes batches of one; one of them loses its payload."""

from __future__ import annotations

import importlib
import random
from pathlib import Path
from typing import Any

import pytest

from barnabas.claims import PayloadError
from tests.examples.stage import EXAMPLES, PATIENCE_SECONDS, Stage
from tests.pages import blocks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(5 * PATIENCE_SECONDS)]


def test_files_arrive_and_a_lost_one_is_reported(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    large_messages: Any = importlib.import_module("large_messages")
    topic = stage.topic("videos", [])
    outbox, inbox, store = (tmp_path / name for name in ("outbox", "inbox", "store"))
    for folder in (outbox, inbox, store):
        folder.mkdir()
    luck = random.Random(7)
    sizes = {"first.mp4": 10 << 20, "small.txt": 100, "lost.mp4": 2 << 20, "last.mp4": 3 << 20}
    files = {name: luck.randbytes(size) for name, size in sizes.items()}
    for name, content in files.items():
        (outbox / name).write_bytes(content)
    large_messages.send(stage.bootstrap, topic, str(store), [outbox / name for name in files])
    (payload,) = [each for each in store.rglob("*") if each.is_file() and each.stat().st_size == sizes["lost.mp4"]]
    payload.unlink()
    lost: list[PayloadError] = []
    large_messages.receive(
        stage.bootstrap, topic, str(store), inbox, lambda: (inbox / "last.mp4").exists(), lost.append
    )
    assert {each.name: each.read_bytes() for each in inbox.iterdir()} == {
        name: content for name, content in files.items() if name != "lost.mp4"
    }
    (error,) = lost
    assert str(error) == f"the payload of {topic}-0@2 is gone: {payload.as_uri()}"


def test_the_page_runs_as_it_is_printed(stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topic = stage.topic("videos", [])
    page = blocks("docs/large-messages.md")[0].replace("localhost:9092", stage.bootstrap)
    exec(page.replace('"videos"', repr(topic)).replace("/srv/payloads", str(tmp_path)), {})
    assert capsys.readouterr().out == "10000000\n"
