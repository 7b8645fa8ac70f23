"""`barnabas adopt check`: may this cluster of Apache Kafka become barnabas, and what will be otherwise?

The exit code is 0 if nothing blocks, 1 if something does, 2 after a wrong command line.
"""

from __future__ import annotations

import time

import click

from barnabas.adopt.check import checked
from barnabas.adopt.cluster_reader import read_cluster
from barnabas.adopt.cluster_state import ClusterState
from barnabas.adopt.finding import Finding, Verdict
from barnabas.adopt.looked_at import counts, looked_at
from barnabas.cli.failure import Quiet
from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session, session_options

__all__ = ["check", "report"]


@click.command()
@session_options
def check(session: Session) -> None:
    """Look over a running cluster of Apache Kafka: what works, differs or blocks when its nodes become barnabas.

    It changes nothing. The exit code is 1 if something blocks.

    \b
    barnabas adopt check -b kafka-1:9092
    """
    with session.admin() as admin:
        state = read_cluster(admin, time.time_ns() // 1_000_000)
    findings = checked(state)
    session.output.show_found(report(state, findings))
    if not session.output.is_json:
        click.echo(f"\n{looked_at(counts(state))}")
        for what, why in state.unseen:
            click.echo(f"not looked at: {what}: {why}")
    if any(each.verdict == Verdict.BLOCKS for each in findings):
        raise Quiet


def report(state: ClusterState, findings: list[Finding]) -> Found:
    """Return what was found, as data and as a table."""
    rows = [(each.verdict.value, each.where, each.what, each.remedy or None) for each in findings]
    table = Table(("VERDICT", "WHERE", "WHAT", "WHAT-TO-DO"), rows, below=("WHAT", "WHAT-TO-DO"))
    of_verdict = {each.value: sum(one.verdict == each for one in findings) for each in Verdict}
    data = {
        "cluster_id": state.cluster_id,
        "verdicts": of_verdict,
        "findings": table.objects(),
        "looked_at": {noun.replace(" ", "_"): count for noun, count in counts(state).items()},
        "not_looked_at": [each._asdict() for each in state.unseen],
    }
    return Found(data, [table])
