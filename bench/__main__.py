"""`make bench`: run the catalogue on both brokers in turn and write docs/benchmarks.md.

python -m bench [--runs 3] [--megabytes 300] [--seconds 4] [--only WORD ...] [--skip WORD ...] [--output docs/benchmarks.md]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench.report import Results, print_table, write_page
from bench.scenarios import Running, catalogue, librdkafka, start

NAMES = ("barnabas", "apache-kafka")


def warm_up(running: Running) -> None:
    """The JVM compiles what it has run often; both get the same."""
    with running.topic() as topic:
        for acks in ("1", "all"):
            librdkafka("produce", running.broker.bootstrap_servers, topic, 200_000, 1000, 16_384, acks)
        librdkafka("consume", running.broker.bootstrap_servers, topic, 400_000)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--megabytes", type=int, default=300, help="payload of a produce or consume run of 1 KB records"
    )
    parser.add_argument("--seconds", type=float, default=4, help="of each request-latency run")
    parser.add_argument("--only", action="append", default=[], help="scenarios whose name has this word")
    parser.add_argument("--skip", action="append", default=[], help="not scenarios whose name has this word")
    parser.add_argument("--output", type=Path, help="also write the page here")
    args = parser.parse_args()
    rows = [
        scenario
        for scenario in catalogue(args.megabytes, args.seconds)
        if not args.only or any(word in scenario.name for word in args.only)
        if not any(word in scenario.name for word in args.skip)
    ]
    results = Results()
    for scenario in (row for row in rows if row.run_alone):
        for _ in range(args.runs):
            for name in NAMES:
                assert scenario.run_alone is not None
                results.add(scenario.name, name, scenario.run_alone(name))
        print_table(results, [scenario.name])
    shared = [row for row in rows if row.run]
    if shared:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            brokers = [start(name, Path(folder) / name) for name in NAMES]
            try:
                for running in brokers:
                    warm_up(running)
                for scenario in shared:
                    for _ in range(args.runs):
                        for running in brokers:
                            assert scenario.run is not None
                            results.add(scenario.name, running.name, scenario.run(running))
                    print_table(results, [scenario.name])
            finally:
                for running in brokers:
                    running.broker.stop()
    if args.output:
        write_page(results, args.output, args.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
