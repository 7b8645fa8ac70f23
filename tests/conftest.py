"""What all tests share: properties are tried on the same examples in every run, no example has to be quick, and Spark starts fast.

Hypothesis fails an example that takes longer than a fifth of a second, and a test whose examples take long to make; a busy machine is
reason enough for both. `make simulate` is for new seeds.
"""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from barnabas.turns import new_budget
from tests.scheduling import FileScheduling, slow_first
from tests.scribbled_frames import scribble_over_handled_frames
from tests.spark.session import SHORT_LIVED

settings.register_profile(
    "barnabas", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("barnabas")

for name, value in SHORT_LIVED.items():
    os.environ.setdefault(name, value)

scribble_over_handled_frames()


@pytest.fixture(autouse=True)
def _whole_turn() -> None:
    """Let each test begin with a whole turn, whatever was spent before it."""
    new_budget()


@pytest.fixture(autouse=True)
def _no_client_is_left_over(request: pytest.FixtureRequest) -> None:
    """End the library's clients that earlier tests left behind, before a test gets the broker that all share.

    A client that nobody has closed lives until its garbage is collected. It asks for its topic and its group again, and the broker, empty
    by then, creates them.
    """
    if "barnabas" in request.fixturenames and _library_threads():
        gc.collect()


def _library_threads() -> bool:
    """Return whether librdkafka may have a client in this process: Linux names threads."""
    threads = Path("/proc/self/task")
    if not threads.exists():
        return True
    for comm in threads.glob("*/comm"):
        with contextlib.suppress(OSError):
            if comm.read_text().startswith("rdk:"):
                return True
    return False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    return FileScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_finish() -> None:
    """Keep what the collection has made out of every later collection of garbage: half a million objects, which live until the end.

    A full collection looks at all of them: a fifth of a second, at the end of each simulated world, for instance.
    """
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # of a parallel run
        slow_first(items)
