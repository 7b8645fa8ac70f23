"""Three or more nodes under faults, while the clients of `barnabas verify` work: what each fault costs, and whether a promise was broken.

    python -m tests.cluster.fault_run [--kind barnabas] [--nodes 3] [--minutes 3] [--seed 1] [--faults NAME …]
        [--rounds N] [--output FILE] [--secure]

Beside the workload, whose history is checked for anomalies, a producer writes to three partitions with acks=all. For each fault the
script prints the longest time in which one of the partitions acknowledged no write, and how long it took afterwards until the cluster
was whole. The exit code is 1 if there is an anomaly, a lost, repeated or disordered record, a node that ended by itself, or a
standstill longer than `--limit`.

The seed decides the faults and the clients' operations. Processes and networks have times of their own, so two runs of one seed are
similar, not equal. `nemesis` has the faults. With `--secure` every listener has SASL_SSL and every node an authorizer, and the clients log
in. Where the machine does not allow network namespaces or mounts, the script says so and
leaves those faults out. SIGTERM and SIGINT end it, and with it the nodes, their namespaces and their mounts.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.verify.run import Settings
from tests.cluster.cluster import Cluster
from tests.cluster.double_faults import DoubleFaults
from tests.cluster.ending import ended_by_signals
from tests.cluster.growing_cluster import GrowingCluster
from tests.cluster.nemesis import Mover, Nemesis, SmallDisk
from tests.cluster.network import Network, NoNetwork
from tests.cluster.node_process import KINDS
from tests.cluster.probe import Probe
from tests.cluster.records import check_exactly_once
from tests.cluster.secured_nodes import SecuredNodes
from tests.cluster.topics import REPLICAS, create_safe_topic
from tests.cluster.waiting import wait_for
from tests.cluster.way_in import way_in
from tests.long_runs import LongRun, add_flag
from tests.verify.run_process import RunProcess

LIMIT_SECONDS = 30.0
QUIET_SECONDS = 5.0
"""Between two faults."""
FAULT_SECONDS = 45.0
"""No fault begins later than this before the workload ends."""
AROUND_SECONDS = 300.0
PROBED = "probed"
AUTO_JOIN = "controller.quorum.auto.join.enable"
NO_MAJORITY = ("all killed", "two killed")


@dataclass
class Cost:
    """What a fault cost, in seconds.

    Attributes:
        fault, detail: what was done, and to whom.
        standstill: the longest time without an acknowledged write to one of the partitions.
        whole: from the end of the fault until every replica was in sync.
    """

    fault: str
    detail: str
    standstill: float
    whole: float

    def __str__(self) -> str:
        return f"{self.fault:<22}{self.standstill:>7.2f} s{self.whole:>8.2f} s  {self.detail}"


@dataclass
class Result:
    """What a run showed.

    Attributes:
        costs: of each fault, in order.
        problems: sentences; none if every promise was kept.
        verdict: of the workload; None if it did not come to one.
        moved: how often a partition's replicas got another order.
    """

    costs: list[Cost] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    verdict: dict[str, Any] | None = None
    moved: int = 0


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def nodes(
    kind: str, folder: Path, count: int, seed: int, *, has_changing_voters: bool, secured: SecuredNodes | None
) -> Iterator[Nemesis]:
    """So many nodes that are up, and what is done to them."""
    with ExitStack() as stack:
        network = disk = None
        try:
            network = stack.enter_context(Network(range(1, count + 1)))
        except NoNetwork as error:
            note(f"no faults of the network: {error}")
        # A paused node must go on before it can end, and its namespace goes after it: the cluster is closed first.
        if has_changing_voters:
            cluster: Cluster = GrowingCluster(
                kind, folder, count, network=network, settings={AUTO_JOIN: "true"}, secured=secured
            )
        else:
            cluster = Cluster(kind, folder, count, network=network, secured=secured)
        rng = random.Random(f"{seed}-faults")
        disk_node = rng.choice(sorted(cluster.nodes))
        try:
            disk = SmallDisk(cluster[disk_node])
            stack.callback(disk.close)
            cluster[disk_node].write_config(cluster.properties(cluster[disk_node]))
        except NoNetwork as error:
            note(f"no full disk: {error}")
        stack.enter_context(cluster)
        nemesis = Nemesis(cluster, rng, network, disk, disk_node)
        DoubleFaults(nemesis, has_changing_voters=has_changing_voters)
        if has_changing_voters:
            cluster[1].format_options = cluster[
                2
            ].format_options  # One that loses its disk must not begin a quorum of its own.
        nemesis.settle()
        yield nemesis


def play(nemesis: Nemesis, settings: Settings, wanted: list[str] | None, rounds: int, folder: Path) -> Result:
    """Do faults until the time is over, and return what they showed."""
    result = Result()
    cluster = nemesis.cluster
    create_safe_topic(cluster, PROBED)
    run = RunProcess(settings, folder / "history.jsonl", command_config=way_in.file)
    try:
        with Probe(cluster.bootstrap_servers, PROBED, 3) as probe:
            wait_for("the workload works", lambda: not run.look() or run.phase == "working")
            nemesis.settle()
            topics = [each for each in cluster.all_topics() if not each.startswith("__")]
            with Mover(cluster, random.Random(f"{settings.seed}-moves"), topics, every_s=8) as mover:
                try:
                    do_faults(nemesis, probe, run, settings, wanted, rounds, result)
                except (AssertionError, RuntimeError) as error:  # The latter from a node that does not start.
                    result.problems.append(str(error))
            result.moved = mover.moved
        if not result.problems:
            probe.flush()
            try:
                check_exactly_once(cluster.bootstrap_servers, probe)
            except AssertionError as error:
                result.problems.append(str(error))
        note("the last reads")
        result.verdict = run.wait(settings.seconds + AROUND_SECONDS)
        if run.stack:
            note(f"a client of the workload was stuck:\n{run.stack}")
    finally:
        run.kill()
    result.problems += [f"{each['name']}: {each['message']}" for each in result.verdict["examples"]]
    return result


def do_faults(
    nemesis: Nemesis,
    probe: Probe,
    run: RunProcess,
    settings: Settings,
    wanted: list[str] | None,
    rounds: int,
    result: Result,
) -> None:
    """Do one fault after the other; every fault once before one comes again."""
    ends = time.monotonic() + settings.seconds - FAULT_SECONDS
    for _ in range(rounds):
        for name in nemesis.schedule():
            if wanted and name not in wanted:
                continue
            if time.monotonic() > ends:
                return
            began = time.monotonic()
            detail = nemesis.faults[name]()
            over = time.monotonic()
            nemesis.settle()
            whole = time.monotonic() - over
            time.sleep(QUIET_SECONDS)
            cost = Cost(name, detail, probe.standstill(began, time.monotonic()), whole)
            result.costs.append(cost)
            note(str(cost))
            if run.look() is False:
                note(f"the workload is over: {run.phase}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.fault_run", description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=sorted(KINDS), default="barnabas")
    parser.add_argument("--nodes", type=int, default=3, help="brokers, each with a controller in it; three or more")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", nargs="+", help="only these")
    parser.add_argument("--rounds", type=int, default=1000, help="how often each fault, at most")
    parser.add_argument("--group-protocol", choices=("classic", "consumer"), default="classic")
    parser.add_argument("--protocol", choices=("auto", "v1", "v2"), default="auto", help="of transactions")
    parser.add_argument(
        "--changing-voters", action="store_true", help="controllers join the quorum by themselves, and leave it"
    )
    parser.add_argument("--secure", action="store_true", help="SASL_SSL on every listener, and ACLs; of barnabas")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds a partition may stand still")
    parser.add_argument("--folder", type=Path, help="keep the nodes' files and the history there")
    parser.add_argument("--output", type=Path, help="write what was seen there, as JSON")
    add_flag(parser)
    args = parser.parse_args()
    if args.secure and args.kind != "barnabas":
        parser.error("--secure is for --kind barnabas")
    if args.nodes < REPLICAS:
        parser.error(f"--nodes {args.nodes}: each partition has {REPLICAS} replicas, so there must be as many nodes")
    what = f"faults on {args.kind}"
    what += f", {args.nodes} nodes" * (args.nodes != REPLICAS) + ", encrypted" * args.secure
    run = LongRun("faults", what, is_kept=args.record)
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-")))
        folder.mkdir(parents=True, exist_ok=True)
        secured = SecuredNodes(folder / "certificates") if args.secure else None
        if secured is not None:
            way_in.use(secured.client)
        with nodes(
            args.kind, folder, args.nodes, args.seed, has_changing_voters=args.changing_voters, secured=secured
        ) as nemesis:
            settings = Settings(
                nemesis.cluster.bootstrap_servers, seconds=60 * args.minutes, seed=args.seed, protocol=args.protocol,
                group_protocol=args.group_protocol, replication_factor=REPLICAS, keep_topics=True, call_timeout_s=60,
            )  # fmt: skip
            result = play(nemesis, settings, args.faults, args.rounds, folder)
    # How long the processes of a majority take to start depends on the machine.
    result.problems += [
        f"{each.fault}: a partition stood still for {each.standstill:.1f} s"
        for each in result.costs
        if each.standstill > args.limit and each.fault not in NO_MAJORITY
    ]
    print(f"{args.kind}, seed {args.seed}: {'fault':<22}{'standstill':>9}{'whole':>10}")
    print(*result.costs, sep="\n")
    print(f"{result.moved} times other replicas led; workload: {json.dumps((result.verdict or {}).get('statistics'))}")
    print(*(f"PROBLEM: {each}" for each in result.problems), sep="\n")
    print("no anomaly" if not result.problems else f"{len(result.problems)} problems")
    if args.output:
        costs = [vars(each) for each in result.costs]
        args.output.write_text(
            json.dumps({"costs": costs, "problems": result.problems, "verdict": result.verdict}, indent=1) + "\n"
        )
    if not result.problems:
        run.ended(f"{len(result.costs)} faults, replicas that led moved {result.moved} times: no anomaly")
    return 1 if result.problems else 0


if __name__ == "__main__":
    sys.exit(main())
