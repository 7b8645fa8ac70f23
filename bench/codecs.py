"""What a codec saves and costs, by kind of record: `python -m bench.codecs [--lines 200000] [--runs 3] [--write docs/choices.md]`.

The records are the same order lines as text (CSV), as JSON and as packed binary. Each is produced through librdkafka into one partition
of a broker, and read again, in processes of their own. The ratio is the payload by the bytes of the log on disk; CPU is that of the
producing and of the reading process, without their start. The broker passes batches on as they are, whatever the codec.
"""

from __future__ import annotations

import argparse
import csv
import io
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import barnabas
from barnabas.demo.events import ShopEvents
from barnabas.demo.generator import COLUMNS, generate_lines
from barnabas.demo.shop import ORDERS

CODECS = ("none", "snappy", "lz4", "zstd", "gzip")
KINDS = ("text", "JSON", "binary")
BATCHES = (16_384, 1_000_000)
MARK = "codecs"


class Measured(NamedTuple):
    """One run.

    Attributes:
        payload, stored: bytes of the values, and of the log.
        produce_s, consume_s: CPU seconds.
    """

    payload: int
    stored: int
    produce_s: float
    consume_s: float


def values(kind: str, lines: int) -> list[bytes]:
    """Return order lines as records of a kind; lines that are not valid are left out."""
    return list(_values(kind, lines))


def _values(kind: str, lines: int) -> Iterator[bytes]:
    if kind == "JSON":
        shop = ShopEvents()
        yield from (
            event.value for line in generate_lines(lines) for event in shop.line(line) if event.topic == ORDERS.name
        )
        return
    for line in generate_lines(lines):
        if kind == "text":
            text = io.StringIO()
            csv.writer(text).writerow(line)
            yield text.getvalue().encode()
            continue
        assert len(line) == len(COLUMNS)
        order, code, _, quantity, at, price, customer, country = line
        try:
            numbers = struct.pack(
                "<idf", int(quantity), time.mktime(time.strptime(at, "%Y-%m-%d %H:%M:%S")), float(price)
            )
        except ValueError:
            continue
        yield numbers + order.encode() + code.encode() + customer.encode() + country.encode()


def load(what: str, servers: str, topic: str, kind: str, lines: int, codec: str, batch: int) -> float:
    """Produce or consume every record; return the CPU seconds of this process."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    records = values(kind, lines)
    if what == "produce":
        producer = Producer(
            {
                "bootstrap.servers": servers,
                "compression.type": codec,
                "batch.size": batch,
                "linger.ms": 100,
                "queue.buffering.max.messages": 1_000_000,
                "delivery.report.only.error": True,
            }
        )
        producer.list_topics(topic, 30)
        began = time.process_time()
        for record in records:
            producer.produce(topic, record, partition=0)
        if producer.flush(280):
            raise SystemExit("records were left over")
        return time.process_time() - began
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "codecs", "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    left = len(records)
    began = time.process_time()
    while left:
        got = consumer.consume(min(left, 10_000), 30)
        if not got:
            raise SystemExit(f"{left} records did not come")
        left -= len(got)
    return time.process_time() - began


def measure(broker: barnabas.Broker, folder: Path, kind: str, lines: int, codec: str, batch: int, run: int) -> Measured:
    """Produce and consume once, in a topic of its own."""
    topic = f"{kind}-{codec}-{batch}-{run}"
    broker.create_topic(topic, partitions=1)
    seconds = []
    for what in ("produce", "consume"):
        more = (broker.bootstrap_servers, topic, kind, lines, codec, batch)
        command = [sys.executable, "-m", "bench.codecs", "--load", what, *map(str, more)]
        seconds.append(float(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout))
    stored = sum(each.stat().st_size for each in (folder / f"{topic}-0").glob("*.log"))
    return Measured(sum(map(len, values(kind, lines))), stored, *seconds)


def table(found: dict[tuple[str, int, str], list[Measured]]) -> str:
    """Return the medians as a table in Markdown."""
    lines = [
        "| records | batch | codec | smaller by | producer's CPU s/GB | reader's CPU s/GB |",
        "|---|--:|---|--:|--:|--:|",
    ]
    for (kind, batch, codec), runs in found.items():
        payload = runs[0].payload
        sent, read = (
            statistics.median(seconds) / payload * 1e9
            for seconds in zip(*((each.produce_s, each.consume_s) for each in runs), strict=True)
        )
        ratio = payload / statistics.median(each.stored for each in runs)
        lines.append(f"| {kind} | {batch // 1000:,} KB | {codec} | {ratio:.1f}x | {sent:.1f} | {read:.1f} |")
    return "\n".join(lines)


def write(page: Path, mark: str, text: str) -> None:
    """Put a text between the marks of a page."""
    before, _, rest = page.read_text().partition(f"<!-- {mark} -->\n")
    _, _, after = rest.partition(f"<!-- end of {mark} -->")
    page.write_text(f"{before}<!-- {mark} -->\n\n{text}\n\n<!-- end of {mark} -->{after}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.codecs", description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument("--load", nargs=7, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        what, servers, topic, kind, lines, codec, batch = options.load
        print(load(what, servers, topic, kind, int(lines), codec, int(batch)))
        return
    found: dict[tuple[str, int, str], list[Measured]] = {}
    with barnabas.Broker() as broker:
        folder = Path(broker.data_dir)
        for run in range(options.runs):
            for kind in KINDS:
                for batch in BATCHES:
                    for codec in CODECS:
                        measured = measure(broker, folder, kind, options.lines, codec, batch, run)
                        found.setdefault((kind, batch, codec), []).append(measured)
    print(table(found))
    if options.write is not None:
        write(options.write, MARK, table(found))


if __name__ == "__main__":
    main()
