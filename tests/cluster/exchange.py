"""Nodes of Apache Kafka under load become barnabas one by one, in place, and go back: what a step costs, and whether promises hold.

    python -m tests.cluster.exchange [--versions 4.0.0,4.3.1] [--quorum static,dynamic] [--security plain,secured] [--rounds 1]
        [--meanwhile share,connect,streams] [--by hand|commands|beside] [--kill] [--compare] [--alone] [--all] [--seed 1] [--folder DIR]

Without --versions, --quorum and --security it plays `CELLS`, which have each value once; with one of them, or --all, the product. A
round is all nodes there and back. Meanwhile an idempotent producer, a producer of transactions, a committing member of a classic
group and one of a KIP-848 group with a regular expression work, and, unless --meanwhile names only some or `none`, a share group (from
4.2 on), Kafka Streams' smoke test (in plain text) and Kafka Connect. For each step the script prints the longest time in which one of three
partitions acknowledged no write; with --compare first the same for a rolling restart of the nodes as Apache Kafka. With --alone a round is
such a rolling restart, and no node becomes barnabas: what Apache Kafka does by itself under the same clients. The exit code is 1 if
something was lost, doubled, torn or out of order, if replicas differ at the end, or if nothing was seen.

SIGTERM and SIGINT end it, and with it the nodes.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import apache_kafka

from barnabas.cli.wording import counted
from tests.cluster.cluster import Cluster
from tests.cluster.ending import ended_by_signals
from tests.cluster.exchange_clients import Member, Transactor, kept_offsets
from tests.cluster.exchange_judge import SENT_AGAIN, Verdict, Written, judge_group, judge_records, judge_transactions
from tests.cluster.exchange_rights import USER, allow
from tests.cluster.exchanged_cluster import QUORUMS, ExchangedCluster
from tests.cluster.meanwhile.chosen import COUNTED, NAMES, at_work, chosen, made
from tests.cluster.meanwhile.companion import Companion
from tests.cluster.node_process import NodeProcess
from tests.cluster.probe import Probe
from tests.cluster.records import read_partition
from tests.cluster.replicas import check_bytes_identical, producers
from tests.cluster.secured_nodes import SecuredNodes
from tests.cluster.topics import create_safe_topics
from tests.cluster.waiting import wait_for
from tests.cluster.way_in import way_in
from tests.long_runs import LongRun, add_flag

VERSIONS = ("4.0.0", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
SECURITY = ("plain", "secured")
PARTITIONS = 3
RECORDS, TRANSACTIONS = "exchange-records", "exchange-transactions"
PROTOCOLS = {"classic": RECORDS, "consumer": "^exchange-rec.*"}


class Way(NamedTuple):
    """What all nodes become, one by one.

    Attributes:
        name: as the results print it.
        kind: of node, of `ExchangedCluster.exchange`.
        by: how a node changes, of `BY`.
    """

    name: str
    kind: str
    by: str = "hand"


BY = ("hand", "commands", "beside")
ALONE, THERE, BACK = Way("Kafka to Kafka", "apache-kafka"), Way("there", "barnabas"), Way("back", "apache-kafka")


class Cell(NamedTuple):
    """One cluster of the matrix."""

    version: str
    quorum: str
    security: str


CELLS = (
    Cell("4.3.1", "static", "plain"),
    Cell("4.0.0", "dynamic", "plain"),
    Cell("4.4.0", "static", "secured"),
    Cell("4.1.2", "dedicated", "plain"),
    Cell("4.2.1", "dynamic", "secured"),
)


@dataclass
class Clients:
    """All that works while nodes change."""

    probe: Probe
    transactor: Transactor
    members: list[Member]
    companions: list[Companion]


@dataclass
class Result:
    """What a cell has shown.

    Attributes:
        gaps: by the direction of a step, the longest time in seconds in which a partition acknowledged no write.
        verdicts: by the client that is judged.
    """

    gaps: dict[str, list[float]] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        return [f"{name}: {each}" for name, each in self.verdicts.items() if each.problems]

    def __str__(self) -> str:
        gaps = "; ".join(f"{way} {max(each):.2f} s" for way, each in self.gaps.items())
        return "\n".join([f"longest gaps: {gaps}", *(f"{name}: {each}" for name, each in self.verdicts.items())])


@contextmanager
def clients(cluster: Cluster, meanwhile: Sequence[str] = ()) -> Iterator[Clients]:
    """Let the clients work while the block runs; the user of a secured cluster is one whose rights are access control lists."""
    with ExitStack() as stack:
        with way_in.by(allow(cluster)) if cluster.secured is not None else nullcontext():
            servers = cluster.bootstrap_servers
            found = Clients(
                Probe(servers, RECORDS, PARTITIONS),
                Transactor(servers, TRANSACTIONS),
                [
                    Member(servers, RECORDS, f"exchange-{protocol}", protocol=protocol, subscription=subscription)
                    for protocol, subscription in PROTOCOLS.items()
                ],
                made(meanwhile, cluster, RECORDS, cluster.folder / "meanwhile"),
            )
        for each in (*found.members, found.probe, found.transactor):
            stack.enter_context(each)
        stack.enter_context(at_work(found.companions))
        yield found


def step(cluster: ExchangedCluster, work: Clients, node_id: int, way: Way, kill: random.Random | None) -> float:
    """Change one node, see that each partition and each application goes on, and return the longest gap in seconds."""
    probe = work.probe
    began = time.monotonic()
    if way.by == "beside":
        done = cluster.replace(node_id, way.kind, kill)
    else:
        done = cluster.exchange(node_id, way.kind, kill, by_command=way.by == "commands")
    before = len(probe.acknowledged)
    wait_for("the producer goes on", lambda: len(probe.acknowledged) > before + 20 * PARTITIONS)
    for each in work.companions:
        each.await_progress()
    ended = time.monotonic()
    gap = probe.standstill(began, ended)
    print(f"  {done}: {ended - began:.0f} s, longest gap {gap:.2f} s", flush=True)
    return gap


def play(
    cell: Cell,
    folder: Path,
    ways: Sequence[Way],
    *,
    seed: int,
    has_kills: bool = False,
    meanwhile: Sequence[str] = (),
) -> Result:
    """Play one cell, and judge it.

    Args:
        folder: for the files of the nodes.
        ways: all nodes change so, one way after the other.
        seed: of the order of the nodes and of the kills.
        meanwhile: the applications that work, of `chosen.NAMES`; those that cannot are named and left out.
    """
    apache_kafka.use(cell.version)
    chance = random.Random(f"{seed} {cell}")
    secured = SecuredNodes(folder / "certificates", users=(USER,)) if cell.security == "secured" else None
    result = Result()
    able, reasons = chosen(meanwhile, cell.version, is_secured=secured is not None)
    for each in reasons:
        print(f"  {each}", flush=True)
    with ExitStack() as stack:
        if secured is not None:
            stack.enter_context(way_in.by(secured.client))
        cluster = ExchangedCluster(folder, cell.quorum, secured)
        stack.enter_context(cluster)
        create_safe_topics(cluster, [RECORDS, TRANSACTIONS])
        with clients(cluster, able) as work:
            wait_for("all clients work", lambda: all_work(work))
            for way in ways:
                able_nodes = sorted(each.node_id for each in cluster.nodes.values() if can_change(cell, way, each))
                order = chance.sample(able_nodes, len(able_nodes))
                for node_id in order:
                    kill = chance if has_kills else None
                    result.gaps.setdefault(way.name, []).append(step(cluster, work, node_id, way, kill))
            ends = finish(work)
            found = {each.name: each.finish(ends) for each in work.companions}
        result.verdicts = judge(cluster, work) | found
        for topic in (RECORDS, TRANSACTIONS):
            cluster.await_in_sync([topic])
            check_bytes_identical(cluster, topic)
    return result


def can_change(cell: Cell, way: Way, node: NodeProcess) -> bool:
    """Return whether a node can change so: a new node cannot take the place of a voter where the voters are fixed."""
    return way.by != "beside" or cell.quorum == "dynamic" or not node.is_controller


def all_work(work: Clients) -> bool:
    """Return whether each client has done something."""
    return bool(work.probe.acknowledged and work.transactor.committed) and all(each.events for each in work.members)


def finish(work: Clients) -> list[int]:
    """End the producer first, so that the groups can read all; return the ends of its partitions."""
    work.probe.__exit__(None, None, None)
    work.probe.flush()
    ends = [0] * PARTITIONS
    for each in work.probe.acknowledged:
        ends[each.partition] += 1
    for member in work.members:
        wait_for(
            f"group {member.group} has read all",
            partial(_has_read, member, ends),
        )
    return ends


def _has_read(member: Member, ends: Sequence[int]) -> bool:
    return all(member.reached.get(index, 0) >= end for index, end in enumerate(ends))


def _written(cluster: Cluster, partition: int) -> list[Written]:
    """Return what a consumer reads of a partition, with the producers that the leader's disk names."""
    found = producers(cluster, RECORDS, partition)
    return [
        Written(int(value), found[offset])
        for offset, value in read_partition(cluster.bootstrap_servers, RECORDS, partition)
    ]


def judge(cluster: Cluster, work: Clients) -> dict[str, Verdict]:
    """Read everything back, and judge each client; their threads have ended."""
    servers, probe = cluster.bootstrap_servers, work.probe
    there = {index: _written(cluster, index) for index in range(PARTITIONS)}
    told: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
    for each in probe.acknowledged:
        told[each.partition].append(each.number)
    found = {"records": judge_records(told, there)}
    found["records"].found("given up", probe.failures)
    parts = [
        [int(value) for _, value in read_partition(servers, TRANSACTIONS, index, committed_only=True)]
        for index in (0, 1)
    ]
    worked = work.transactor
    found["transactions"] = judge_transactions(worked.committed, worked.aborted, parts, worked.begun)
    found["transactions"].counted["producers opened after a fatal error"] = len(worked.fatal)
    ends = {index: len(numbers) for index, numbers in there.items()}
    for member in work.members:
        kept = kept_offsets(servers, RECORDS, member.group, PARTITIONS)
        found[member.group] = judge_group(member.events, ends, kept)
        found[member.group].found("failures", member.failures)
    return found


def cells(args: argparse.Namespace) -> Sequence[Cell]:
    """Return the cells that the command line asks for."""
    if not (args.all or args.versions or args.quorum or args.security):
        return CELLS
    asked = (
        (args.versions or (VERSIONS if args.all else ("4.3.1",))),
        (args.quorum or (QUORUMS if args.all else ("static",))),
        (args.security or (SECURITY if args.all else ("plain",))),
    )
    return [Cell(*each) for each in itertools.product(*asked)]


def _listed(*allowed: str) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        found = text.split(",")
        if wrong := [each for each in found if allowed and each not in allowed]:
            raise argparse.ArgumentTypeError(f"{wrong[0]} is none of {', '.join(allowed)}")
        return found

    return read


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.exchange", description=__doc__.splitlines()[0])
    parser.add_argument("--versions", type=_listed(), help=f"of Apache Kafka, such as {','.join(VERSIONS)}")
    parser.add_argument("--quorum", type=_listed(*QUORUMS), help=",".join(QUORUMS))
    parser.add_argument("--security", type=_listed(*SECURITY), help=",".join(SECURITY))
    parser.add_argument(
        "--by",
        choices=BY,
        default="hand",
        help="a node is stopped and started by hand, changed in place by the commands of `barnabas adopt`, or replaced by them by a"
        " new node beside it",
    )
    parser.add_argument("--all", action="store_true", help="the whole product of what is not given")
    parser.add_argument("--rounds", type=int, default=1, help="all nodes there and back, so often")
    parser.add_argument("--kill", action="store_true", help="kill each node while it stops or starts")
    parser.add_argument(
        "--compare", action="store_true", help="first roll the nodes as Apache Kafka, to compare the gaps"
    )
    parser.add_argument(
        "--alone", action="store_true", help="only roll the nodes as Apache Kafka; none becomes barnabas"
    )
    parser.add_argument(
        "--meanwhile",
        type=_listed(*NAMES, "none"),
        default=list(NAMES),
        help=f"what works beside producers and groups, of {','.join(NAMES)}, or none",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep the nodes' files there")
    add_flag(parser)
    args = parser.parse_args()
    if args.by == "beside" and any(cell.quorum == "static" for cell in cells(args)):
        parser.error(
            "every node of a static cluster is a voter, and its voters are fixed: give --quorum dynamic,dedicated"
        )
    wanted, total, failed = cells(args), Verdict(), 0
    meanwhile = [each for each in args.meanwhile if each != "none"]
    gaps: dict[str, list[float]] = {}
    ways = (
        [ALONE] * args.rounds
        if args.alone
        else [*[ALONE] * args.compare, *[each._replace(by=args.by) for each in (THERE, BACK)] * args.rounds]
    )
    what = ("Apache Kafka alone" if args.alone else "exchange with Apache Kafka") + (
        ", with kills" if args.kill else ""
    )
    what += f", by {args.by}" if args.by != "hand" else ""
    what += f", meanwhile {', '.join(meanwhile)}" if meanwhile else ""
    run = LongRun("exchange", what, is_kept=args.record)
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="exchange-")))
        for number, cell in enumerate(wanted):
            print(f"Apache Kafka {cell.version}, {cell.quorum}, {cell.security}, seed {args.seed}", flush=True)
            place = folder / f"cell-{number}"
            try:
                result = play(cell, place, ways, seed=args.seed, has_kills=args.kill, meanwhile=meanwhile)
            except (AssertionError, RuntimeError) as error:
                failed += 1
                print(f"PROBLEM: {error}", flush=True)
                continue
            print(result, *(f"PROBLEM: {each}" for each in result.problems), sep="\n", flush=True)
            failed += bool(result.problems)
            for way, each in result.gaps.items():
                gaps.setdefault(way, []).extend(each)
            for name in ("acknowledged", SENT_AGAIN, "transactions committed", *COUNTED):
                counts = [verdict.counted.get(name, 0) for verdict in result.verdicts.values()]
                if any(counts) or name not in COUNTED:
                    total.counted[name] = total.counted.get(name, 0) + sum(counts)
    longest = ", ".join(f"{way} {max(each):.2f} s in {len(each)} steps" for way, each in gaps.items())
    summary = f"{counted(len(wanted), 'cluster')}, {total}: none lost, doubled or torn; longest gap {longest}"
    print(f"{failed} of {len(wanted)} cells failed" if failed else summary)
    if not failed:
        run.ended(summary)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
