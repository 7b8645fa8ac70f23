"""Measure how much of each module its own test module runs, and compare with the floors.

    python tools/own_coverage.py [--jobs 2] [src/barnabas/raft ...]

`src/barnabas/log/flusher.py` is covered by `tests/log/test_flusher.py` alone: what other tests run of it does not count, so a bug in a
module fails the tests that stand beside it.

- One pytest session collects the test modules. A forked child runs the tests of one, under coverage of one module; what one test
  module leaves in caches another one does not find. Lines that run at import count as covered.
- `tests/coverage_floors.txt` names the modules below `FLOOR`, each with its own floor. A floor only goes up: one that lies more than
  `SLACK` below the measured number is an error too.
- Left out are tests that start Spark or a JVM, or take minutes.

After the idea of `maxi_cov` in websockets.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from coverage import Coverage

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "barnabas"
FLOORS = ROOT / "tests" / "coverage_floors.txt"
FLOOR = 80
SLACK = 5
WORDS = "-o addopts= -p no:terminal -p no:xdist -p no:cacheprovider"
OPTIONS = [*WORDS.split(), "-m", "not conform and not long and not spark"]


def own_test(module: Path) -> Path:
    return ROOT / "tests" / module.parent.relative_to(SOURCE) / f"test_{module.stem}.py"


def measurable(wanted: Iterable[Path]) -> list[Path]:
    """Return the modules below the given folders, or the modules given, that have a test module of their own."""
    found = {module for path in wanted for module in ([path] if path.is_file() else path.rglob("*.py"))}
    return sorted(module for module in found if own_test(module).exists())


def read_floors(text: str) -> dict[str, int]:
    """Return the floor of each module that is named: lines of a number and a module; `#` begins a comment."""
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    return {module: int(floor) for floor, module in filter(None, lines)}


def judge(measured: dict[str, float], floors: dict[str, int]) -> list[str]:
    """Return a sentence for each module that lies below its floor, or too far above a floor of its own."""
    wrong = []
    for module, percent in sorted(measured.items()):
        floor = floors.get(module, FLOOR)
        if percent < floor:
            wrong.append(f"{module}: its tests run {percent:.1f} % of it, the floor is {floor} %")
        elif module in floors and percent >= min(floor + SLACK, FLOOR):
            wrong.append(f"{module}: {percent:.1f} % are run now, raise its floor from {floor} % in {FLOORS.name}")
    return wrong


class OwnCoverage:
    """A pytest plugin: runs the collected tests file by file, each in a child, and keeps the percentages."""

    def __init__(self, modules: list[Path], jobs: int, folder: Path) -> None:
        self.modules, self.jobs, self.folder = modules, jobs, folder
        self.measured: dict[str, float] = {}
        self.failed: list[str] = []
        self._failures: list[str] = []
        self._at_import = Coverage(data_file=None, include=[f"{SOURCE}/*"], config_file=False)
        self._at_import.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failures.append(f"{report.nodeid}\n{report.longreprtext}")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._at_import.stop()
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all children
        running: dict[int, Path] = {}
        for module in self.modules:
            if len(running) >= self.jobs:
                self._reap(running)
            tests = own_test(module)
            items = [item for item in session.items if item.path == tests]
            if items and (pid := os.fork()):
                running[pid] = module
            elif items:
                self._measure(module, items)
        while running:
            self._reap(running)
        return True

    def _measure(self, module: Path, items: list[pytest.Item]) -> None:
        """Run tests under coverage of a module, write which lines they run, and end the process."""
        coverage = Coverage(data_file=None, include=[str(module)], config_file=False)
        coverage.start()
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        coverage.stop()
        ran = {*(coverage.get_data().lines(str(module)) or ()), *(self._at_import.get_data().lines(str(module)) or ())}
        coverage.exclude("if TYPE_CHECKING:")
        _, statements, _, _, _ = coverage.analysis2(str(module))
        percent = 100 * len(ran & set(statements)) / len(statements) if statements else 100
        self._answer(module).write_text(json.dumps([percent, self._failures]))
        os._exit(0)

    def _answer(self, module: Path) -> Path:
        return self.folder / f"{'.'.join(module.relative_to(SOURCE).with_suffix('').parts)}.json"

    def _reap(self, running: dict[int, Path]) -> None:
        """Wait for a child; its module is failed if the child died or a test failed."""
        pid, _ = os.wait()
        module = running.pop(pid)
        name = str(module.relative_to(ROOT))
        answer = self._answer(module)
        percent, failures = json.loads(answer.read_text()) if answer.exists() else (0.0, ["the process died"])
        print(f"{percent:6.1f} %  {name}", flush=True)
        if failures:
            self.failed.append(f"{name}: its tests fail")
            print(*failures, sep="\n", flush=True)
        else:
            self.measured[name] = percent


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "paths", nargs="*", type=Path, default=[SOURCE], help="folders or modules; all of src/barnabas if none"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    modules = measurable(path.resolve() for path in given.paths)
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        plugin = OwnCoverage(modules, given.jobs, Path(folder))
        pytest.main([*OPTIONS, *map(str, map(own_test, modules))], plugins=[plugin])
    wrong = [*plugin.failed, *judge(plugin.measured, read_floors(FLOORS.read_text()))]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    whole = sum(percent == 100 for percent in plugin.measured.values())
    print(f"{len(plugin.measured)} modules measured, {whole} of them wholly run by their own tests; {len(wrong)} wrong")
    return 1 if wrong or not plugin.measured else 0


if __name__ == "__main__":
    sys.exit(main())
