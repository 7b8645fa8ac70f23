"""Plant small bugs in the modules of a room and run the room's own tests against each of them.

python tools/mutants.py [--room raft] [--module src/barnabas/raft/quorum.py] [--sample 200] [--seed 1]

- All work is done in a temporary copy of the tree. One pytest session for each room collects the tests once.
- A forked child runs the tests under coverage: which test runs which line, and how long does it take?
- Each mutant gets a forked child. The child gives the mutated function its new code and runs the tests that run the mutated
  statement, fastest first, until one fails. A mutant that takes ten times the usual time counts as noticed.
- A mutant in a statement that runs at import gets modules that are imported again, and all tests of the room.
- Left out are tests that take more than half a minute, that start Spark, or that need other clients.
- `tests/mutants/equivalent.txt` names the mutants that change nothing a test could see. They do not count.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import pytest
from coverage import Coverage
from hypothesis import Phase, settings
from mutations import Mutation, mutations

# A room's modules are in src/barnabas/ROOM, its tests in tests/ROOM.
ROOMS = ("log", "records", "raft", "metadata", "coordinator", "group", "transaction", "share", "replication", "spark")
EQUIVALENT = Path("tests/mutants/equivalent.txt")
WORDS = "-q -p no:xdist -p no:cacheprovider --disable-warnings --basetemp=tmp --timeout=30"
OPTIONS = [*WORDS.split(), "-m", "not conform and not spark"]


class RoomSession:
    """A pytest plugin that runs mutants in place of the collected tests."""

    def __init__(self, paths: list[Path], sample: int, seed: int) -> None:
        self.paths, self.sample, self.seed = paths, sample, seed
        self.at_import = Coverage(data_file=None, include=[str(path) for path in paths], config_file=False)
        self.at_import.start()
        self.counts = {"mutants": 0, "equivalent": 0, "noticed": 0}
        self.durations: dict[str, float] = {}
        self.failed: set[str] = set()
        self.is_measuring = True

    def pytest_collection(self) -> None:
        one_failure = settings(settings.get_profile("barnabas"), phases=[Phase.explicit, Phase.generate])
        settings.register_profile("mutants", one_failure)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.is_measuring:
            os._exit(1)
        self.durations[report.nodeid] = self.durations.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for path in self.paths:
            importlib.import_module(".".join(path.relative_to(Path("src").resolve()).with_suffix("").parts))
        self.at_import.stop()
        self.functions = [thing for thing in gc.get_objects() if isinstance(thing, FunctionType)]
        self.items = {item.nodeid: item for item in session.items}
        gc.freeze()
        assert in_child(self.measure, 3600), "the tests of the room do not run"
        self.is_measuring = False
        self.measured = Coverage(data_file="measured", config_file=False).get_data()
        self.measured.read()
        self.durations, failed = json.loads(Path("measured.json").read_text())
        for nodeid in failed:
            print(f"left out: {nodeid} fails, or takes more than half a minute", flush=True)
            del self.items[nodeid]
        self.run_mutants()
        return True

    def measure(self) -> None:
        """Run all tests under coverage, and write which lines they run and how long they take."""
        measured = Coverage(data_file="measured", include=[str(path) for path in self.paths], config_file=False)
        measured.start()
        run(list(self.items.values()), on_start=lambda item: measured.switch_context(item.nodeid))
        measured.stop()
        measured.save()
        Path("measured.json").write_text(json.dumps([self.durations, sorted(self.failed)]))

    def run_mutants(self) -> None:
        planted = [mutation for path in self.paths for mutation in mutations(path)]
        if 0 < self.sample < len(planted):
            planted = random.Random(self.seed).sample(planted, self.sample)
        blocks = EQUIVALENT.read_text().split("\n\n")
        equivalent = {tuple(x for x in block.splitlines() if x.startswith(("src/", "-", "+"))) for block in blocks}
        for mutation in planted:
            with contextlib.suppress(SyntaxError):
                mutation.new_code()
                self.counts["mutants"] += 1
                if mutation.name in equivalent:
                    self.counts["equivalent"] += 1
                elif self.is_noticed(mutation):
                    self.counts["noticed"] += 1
                else:
                    print("", *mutation.name, f"line {mutation.first}", sep="\n", flush=True)

    def is_noticed(self, mutation: Mutation) -> bool:
        path, lines = str(mutation.path), set(range(mutation.first, mutation.last + 1))
        runs = self.measured.contexts_by_lineno(path)
        at_import = mutation.at_import or lines & set(self.at_import.get_data().lines(path) or ())
        reached = {test for line in (runs if at_import else lines) for test in runs.get(line, ())} & self.items.keys()
        tests = sorted(reached, key=lambda test: self.durations[test])
        if at_import:
            tests += [test for test in self.items if test not in reached]
        if not tests:
            return False
        limit_s = 10 * sum(self.durations[test] for test in tests) + 10
        new_code = mutation.new_code()
        live = [f for f in self.functions if f.__code__.co_filename == path and f.__code__ in new_code]

        def run_changed() -> None:
            for function in live:
                function.__code__ = new_code[function.__code__]
            run([self.items[test] for test in tests])

        if live and not at_import:
            return not in_child(run_changed, limit_s)
        mutation.path.write_text(mutation.source)
        returned = in_child(lambda: run_again(tests), limit_s)
        mutation.path.write_text(mutation.tree.code)
        return not returned


def run(items: list[pytest.Item], on_start: Callable[[pytest.Item], object] = id) -> None:
    for item, following in itertools.zip_longest(items, items[1:]):
        on_start(item)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def run_again(tests: list[str]) -> None:
    """Import the tree again, in this process, and run the tests."""
    for name in [name for name in sys.modules if name.startswith(("barnabas", "tests"))]:
        del sys.modules[name]
    sys.dont_write_bytecode = True
    Path("tests.args").write_text("\n".join(tests))
    if pytest.main([*OPTIONS, "-x", "@tests.args"]):
        os._exit(1)


def in_child(work: Callable[[], object], limit_s: float) -> bool:
    """Run `work` in a fork of this process, and say whether it returns within the limit."""
    if not (pid := os.fork()):
        try:
            os.setpgid(0, 0)
            for fd in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), fd)
            work()
            os._exit(0)
        finally:
            os._exit(1)
    deadline = time.monotonic() + limit_s
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # the child if it runs on, and processes that its tests have left
    return (ended if ended[0] else os.waitpid(pid, 0))[1] == 0


def run_room(room: str, options: argparse.Namespace) -> None:
    paths = [options.module] if options.module else sorted(Path("src/barnabas", room).rglob("*.py"))
    session = RoomSession([path.resolve() for path in paths], options.sample, options.seed)
    if code := pytest.main([*OPTIONS, "-s", "--no-header", f"tests/{room}"], plugins=[session]):
        sys.exit(code)
    mutants, equivalent, noticed = session.counts.values()
    with open("scores", "a") as scores:
        score = noticed / max(1, mutants - equivalent)
        scores.write(f"{room:12} {mutants:8} {equivalent:11} {noticed:8} {score:7.1%}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", choices=ROOMS, help="one room; all if none is named")
    parser.add_argument("--module", type=Path, help="one module, a path under src")
    parser.add_argument("--sample", type=int, default=0, help="how many mutants of each room; all if not given")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # a room, in the copy of the tree
    options = parser.parse_args()
    if options.inside:
        return run_room(options.inside, options)
    one = options.module.parts[2] if options.module else options.room
    names = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], stdout=-1, check=True, text=True).stdout
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for name in filter(os.path.isfile, names.split("\0")):
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(name, Path(folder, name))
        for room in [one] if one else [room for room in ROOMS if Path("src/barnabas", room).is_dir()]:
            command = [sys.executable, "tools/mutants.py", *sys.argv[1:], "--inside", room]
            subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": f"{folder}/src"}, check=True)
        print(f"\n{'room':12} {'mutants':>8} {'equivalent':>11} {'noticed':>8} {'score':>7}")
        print(Path(folder, "scores").read_text(), end="")


if __name__ == "__main__":
    main()
