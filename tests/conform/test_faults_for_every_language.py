"""The examples of docs/faults.md: a Java, a Go and a JavaScript test find the planted bug of their consumer by a fault.

Each test fails with the planted bug. It passes with the mended consumer, and with the planted bug as long as nothing goes wrong: so it is
the fault that finds the bug.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import apache_kafka
import pytest

from tests.conform.card.toolchains import SILENT, built, java_libraries, run, tool
from tests.process.process import ENVIRONMENT, command

pytestmark = [pytest.mark.conform, pytest.mark.timeout(900)]

EXAMPLES = Path(__file__).parents[2] / "examples" / "faults"
SECONDS = 120


@pytest.fixture(scope="module")
def faults() -> Iterator[str]:
    """Yield the address of the faults of a running cluster of one node."""
    with subprocess.Popen(
        command("start", "--nodes", "1", "--port", "0", "--faults", "127.0.0.1:0"),
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = None
            for line in process.stdout:
                found = re.match(r"faults on (http://\S+)", line) or found
                if line.startswith("barnabas ready on "):
                    break
            assert found is not None
            yield found[1]
        finally:
            process.terminate()


def sources(folder: str) -> list[Path]:
    return sorted(path for path in (EXAMPLES / folder).iterdir() if path.is_file())


def java(consumer: str, *, has_fault: bool) -> list[str]:
    libraries = java_libraries(("org.apache.kafka", "kafka-clients", apache_kafka.VERSION), SILENT)
    files = sources("java")

    def build(target: Path) -> None:
        run(tool("javac"), "-cp", f"{libraries}/*", "-d", str(target), *map(str, files), cwd=target)

    classes = built("faults-java", files, build, libraries.parent.name)
    flags = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    rest = [] if has_fault else ["without-fault"]
    return [tool("java"), *flags, "-cp", f"{classes}:{libraries}/*", "BillingTest", consumer, *rest]


def go(consumer: str, *, has_fault: bool) -> list[str]:
    def build(target: Path) -> None:
        run(tool("go"), "test", "-c", "-o", str(target / "mailer"), ".", cwd=EXAMPLES / "go")

    return [str(built("faults-go", sources("go"), build) / "mailer")]


def javascript(consumer: str, *, has_fault: bool) -> list[str]:
    files = sources("javascript")

    def build(target: Path) -> None:
        for file in files:
            shutil.copy(file, target)
        run(tool("npm"), "ci", "--no-audit", "--no-fund", cwd=target)

    return [tool("node"), "--test", str(built("faults-javascript", files, build) / "stock.test.js")]


LANGUAGES = {
    java: "the customers have paid 10, and the sums say 20",
    go: "9 orders got 6 mails",
    javascript: "teapot: 24",
}


def played(
    language: Callable[..., list[str]], faults: str, consumer: str, *, has_fault: bool = True
) -> tuple[int, str]:
    """Run a test; return its exit code and all that it has printed."""
    variables = {"FAULTS": faults, "CONSUMER": consumer, "FAULT": "" if has_fault else "none"}
    words = language(consumer, has_fault=has_fault)
    done = subprocess.run(
        words, env=os.environ | variables, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.__name__)
def test_a_fault_finds_the_planted_bug(language: Callable[..., list[str]], faults: str) -> None:
    code, printed = played(language, faults, "planted")
    assert code == 1, printed
    assert LANGUAGES[language] in printed, printed
    code, printed = played(language, faults, "mended")
    assert code == 0, printed


COUNT_STOCK = """
const { deliver, count } = require('./stock.js')
const [servers] = process.argv.slice(1)
deliver([servers], [{ id: 'last', article: 'cup', count: 24 }]).then(async () => {
  await fetch(process.env.FAULTS + '/faults', { method: 'POST', body: process.env.FAULT })
  console.log(JSON.stringify(await count([servers], 'last', true)))
})
"""


@pytest.mark.parametrize(
    ("api", "error", "times", "printed"),
    [
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", 8, '{"cup":24}'),
        ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", 24, '{"cup":24}'),
        ("FindCoordinator", "GROUP_AUTHORIZATION_FAILED", None, "KafkaJSGroupCoordinatorNotFound"),
    ],
    ids=["not found for some time", "loading for long", "not allowed"],
)
def test_the_javascript_consumer_waits_for_its_coordinator(
    faults: str, api: str, error: str, times: int | None, printed: str
) -> None:
    """After its retries kafkajs crashes and starts the consumer again. An error that cannot pass ends the process."""
    with urllib.request.urlopen(urllib.request.Request(f"{faults}/reset", method="POST")):
        pass
    with urllib.request.urlopen(faults) as answer:
        servers = json.load(answer)["cluster"]["bootstrap_servers"]
    folder = Path(javascript("mended", has_fault=True)[-1]).parent
    fault = json.dumps({"kind": "fail", "api": api, "error": error, "times": times})
    done = subprocess.run(
        [tool("node"), "-e", COUNT_STOCK, servers], env=os.environ | {"FAULTS": faults, "FAULT": fault},
        cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert printed in done.stdout + done.stderr
    assert done.returncode == (0 if times else 1), done.stderr


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.__name__)
def test_without_the_fault_nothing_finds_it(language: Callable[..., list[str]], faults: str) -> None:
    code, printed = played(language, faults, "planted", has_fault=False)
    assert code == 0, printed
