"""The process: what Linux tells, and nothing elsewhere."""

from __future__ import annotations

import builtins
import gc
import os
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.metrics import process_families


def samples() -> dict[str, list[float]]:
    text = "".join(process_families.families())
    return {metric.name: [s.value for s in metric.samples] for metric in text_string_to_metric_families(text)}


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs Linux")
def test_memory_files_and_collections_are_those_of_this_process() -> None:
    before = gc.get_stats()[2]["collections"]
    gc.collect()
    found = samples()
    assert found["process_resident_memory_bytes"][0] > 1 << 20
    assert found["process_open_fds"] == [len(os.listdir("/proc/self/fd")) - 1]
    assert found["python_gc_collections"][2] > before
    (cpu_seconds,) = found["process_cpu_seconds"]
    assert 0 < cpu_seconds < 1e6


def test_without_proc_the_families_have_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.open

    def no_proc(path: Any, *args: Any, **options: Any) -> Any:
        if str(path).startswith("/proc"):
            raise FileNotFoundError(path)
        return real(path, *args, **options)

    def no_listing(path: str) -> list[str]:
        raise FileNotFoundError(path)

    monkeypatch.setattr(builtins, "open", no_proc)
    monkeypatch.setattr(os, "listdir", no_listing)
    found = samples()
    assert "process_resident_memory_bytes" not in found
    assert "process_open_fds" not in found
    assert found["python_info"] == [1]
