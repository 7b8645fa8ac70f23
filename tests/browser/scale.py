"""How long the console's pages take before their first byte, on a cluster of many topics and groups.

    PYTHONPATH=tools python -m tests.browser.scale --topics 10000 --partitions 1 --groups 1000

It starts a broker and a console, makes the topics and the groups' offsets, and asks for each page: once when nobody has asked before, then
again and again. It prints milliseconds.
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from barnabas.client.admin import Admin, CommittedOffset, NewTopic, TopicPartition
from tests.browser.console_process import console
from tests.conform.brokers import await_leaders, broker

PAGES = {
    "Overview": "",
    "Topics": "topics",
    "Topics, page 100": "topics?page=100",
    "Groups": "groups",
    "a topic": "topic?name=topic-00007",
    "a group": "group?id=group-0007",
    "Messages": "messages?topic=topic-00007",
    "Transactions": "transactions",
}
CREATED_AT_ONCE = 200
ANSWER_SECONDS = 120


def first_byte_ms(home: str, path: str) -> tuple[float, int]:
    """Ask for a page; return the milliseconds until its first byte, and the page's size in bytes."""
    connection = http.client.HTTPConnection(urlsplit(home).netloc, timeout=ANSWER_SECONDS)
    began = time.perf_counter()
    connection.request("GET", f"/clusters/local/{path}", headers={"accept": "text/html"})
    answer = connection.getresponse()
    answer.read(1)
    taken = (time.perf_counter() - began) * 1000
    size = 1 + len(answer.read())
    connection.close()
    assert answer.status == 200, f"{path}: {answer.status}"
    return taken, size


def furnish(bootstrap: str, topics: int, partitions: int, groups: int) -> None:
    """Create the topics, and commit an offset for each group."""
    with Admin(bootstrap, timeout_ms=ANSWER_SECONDS * 1000) as admin:
        for start in range(0, topics, CREATED_AT_ONCE):
            numbers = range(start, min(topics, start + CREATED_AT_ONCE))
            admin.create_topics([NewTopic(f"topic-{number:05}", partitions, 1) for number in numbers])
        # A broker makes the logs of many topics for a while.
        await_leaders(bootstrap, {f"topic-{number:05}": partitions for number in range(topics)}, 1000)
        for number in range(groups):
            offsets = {TopicPartition(f"topic-{number % topics:05}", 0): CommittedOffset(0, "")}
            admin.alter_group_offsets(f"group-{number:04}", offsets)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.scale", description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=1, help="of each topic")
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--times", type=int, default=5, help="how often each page is asked for again")
    parser.add_argument("--on", choices=("barnabas", "kafka"), default="barnabas")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        running = broker("apache-kafka" if given.on == "kafka" else "barnabas", Path(folder) / "broker")
        running.start()
        try:
            began = time.perf_counter()
            furnish(running.bootstrap_servers, given.topics, given.partitions, given.groups)
            print(
                f"{given.topics:,} topics with {given.topics * given.partitions:,} partitions and {given.groups:,} groups"
                f" on {running.name}, made in {time.perf_counter() - began:.0f} s",
                flush=True,
            )
            clusters = Path(folder) / "console.toml"
            clusters.write_text(
                f'[clusters.local]\nbootstrap-server = "{running.bootstrap_servers}"\ntimeout-ms = 60000\n'
            )
            with console("--config", str(clusters)) as home:
                print(f"{'page':18} {'first':>8} {'median':>8} {'most':>8}  ms to the first byte; {'kB':>6}")
                for name, path in PAGES.items():
                    first, size = first_byte_ms(home, path)
                    again = [first_byte_ms(home, path)[0] for _ in range(given.times)]
                    middle, most = statistics.median(again), max(again)
                    print(f"{name:18} {first:8.0f} {middle:8.0f} {most:8.0f} {size / 1000:30.0f}", flush=True)
        finally:
            running.stop()


if __name__ == "__main__":
    main()
