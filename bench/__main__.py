"""`make bench`: run the catalogue on both brokers in turn, then the rows of clusters and Spark's, and write docs/benchmarks.md.

python -m bench [--runs 3] [--megabytes 300] [--seconds 4] [--only WORD ...] [--skip WORD ...] [--output docs/benchmarks.md]

`python -m bench.choices` measures docs/choices.md, and `python -m bench.codecs` its table of codecs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.spark.connector import ConnectorUnavailable, connector_jars

from bench.cluster_rows import cluster_rows, run_cluster_rows
from bench.page import write_page
from bench.report import CONNECTOR, OURS, THEIR_CLUSTER, THEIRS, Results, print_table
from bench.scenarios import Running, Scenario, catalogue, librdkafka, start
from bench.spark_rows import run_rows, spark_rows

NAMES = (OURS, THEIRS)


def warm_up(running: Running) -> None:
    """The JVM compiles what it has run often; both get the same."""
    with running.topic() as topic:
        for acks in ("1", "all"):
            librdkafka("produce", running.broker.bootstrap_servers, topic, 200_000, 1000, 16_384, acks)
        librdkafka("consume", running.broker.bootstrap_servers, topic, 400_000)


def run_scenarios(rows: list[Scenario], runs: int, results: Results) -> None:
    for scenario in (row for row in rows if row.run_alone):
        for _ in range(runs):
            for name in NAMES:
                assert scenario.run_alone is not None
                results.add(scenario.name, name, scenario.run_alone(name))
        print_table(results, scenario.name)
    shared = [row for row in rows if row.run]
    if not shared:
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        brokers = [start(name, Path(folder) / name) for name in NAMES]
        try:
            for running in brokers:
                warm_up(running)
            for scenario in shared:
                for _ in range(runs):
                    for running in brokers:
                        assert scenario.run is not None
                        results.add(scenario.name, running.name, scenario.run(running))
                print_table(results, scenario.name)
        finally:
            for running in brokers:
                running.broker.stop()


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

    def chosen(name: str) -> bool:
        return (not args.only or any(word in name for word in args.only)) and not any(
            word in name for word in args.skip
        )

    brokers, clusters, spark = Results(THEIRS), Results(THEIR_CLUSTER), Results(CONNECTOR)
    run_scenarios([row for row in catalogue(args.megabytes, args.seconds) if chosen(row.name)], args.runs, brokers)
    run_cluster_rows(
        [row for row in cluster_rows(args.megabytes, args.seconds) if chosen(row.name)], args.runs, clusters
    )
    if rows := [row for row in spark_rows(args.megabytes, args.seconds) if chosen(row.name)]:
        try:
            connector_jars()
        except ConnectorUnavailable as error:
            print(f"no rows for Spark: {error}", file=sys.stderr)
        else:
            run_rows(rows, args.runs, spark)
    if args.output:
        write_page(args.output, [brokers, clusters, spark], args.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
