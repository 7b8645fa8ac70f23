"""`barnabas adopt check`: may this cluster of Apache Kafka become barnabas, and what will be otherwise?

The exit code is 0 if nothing blocks, 1 if something does, 2 after a wrong command line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import click

from barnabas.adopt.check import checked
from barnabas.adopt.cluster_reader import read_cluster
from barnabas.adopt.cluster_state import ClusterState, Unseen
from barnabas.adopt.files import unseen_of_files
from barnabas.adopt.finding import Finding, Verdict
from barnabas.adopt.given_file import GivenFile, read_file
from barnabas.adopt.looked_at import counts, looked_at
from barnabas.cli.failure import Quiet
from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session, session_options

__all__ = ["check", "report"]


@click.command()
@click.option(
    "--config",
    "paths",
    type=click.Path(exists=True, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="A node's server.properties, repeatable: looked over with its directories.",
)
@session_options
def check(session: Session, paths: tuple[str, ...]) -> None:
    """Look over a running cluster of Apache Kafka: what works, differs or blocks when its nodes become barnabas.

    It changes nothing. The exit code is 1 if something blocks.

    \b
    barnabas adopt check -b kafka-1:9092 --config server.properties
    """
    now_ms = time.time_ns() // 1_000_000
    files = [read_file(path, os.environ, now_ms) for path in dict.fromkeys(paths)]
    with session.admin() as admin:
        state = read_cluster(admin, now_ms)
    findings = checked(state, files)
    session.output.show_found(report(state, files, findings))
    if not session.output.is_json:
        click.echo(f"\n{looked_at(counts(state, files))}")
        for what, why in _unseen(state, files):
            click.echo(f"not looked at: {what}: {why}")
    if any(each.verdict == Verdict.BLOCKS for each in findings):
        raise Quiet


def _unseen(state: ClusterState, files: Sequence[GivenFile]) -> list[Unseen]:
    return [*state.unseen, *unseen_of_files(files, state)]


def report(state: ClusterState, files: Sequence[GivenFile], findings: Sequence[Finding]) -> Found:
    """Return what was found, as data and as a table."""
    rows = [(each.verdict.value, each.where, each.what, each.remedy or None) for each in findings]
    table = Table(("VERDICT", "WHERE", "WHAT", "WHAT-TO-DO"), rows, below=("WHAT", "WHAT-TO-DO"))
    of_verdict = {each.value: sum(one.verdict == each for one in findings) for each in Verdict}
    data = {
        "cluster_id": state.cluster_id,
        "verdicts": of_verdict,
        "findings": table.objects(),
        "looked_at": {noun.replace(" ", "_"): count for noun, count in counts(state, files).items()},
        "not_looked_at": [each._asdict() for each in _unseen(state, files)],
    }
    return Found(data, [table])
