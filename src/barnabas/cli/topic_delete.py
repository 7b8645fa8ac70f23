"""`barnabas topic delete`: topics with all their records.

An internal topic holds what the cluster keeps for its clients: it is deleted with `--internal` only.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from barnabas.cli.done import Done
from barnabas.cli.failure import Failure, Failures
from barnabas.cli.output import found_rows
from barnabas.cli.session import Session, session_options
from barnabas.cli.topic_arguments import required, topic_names, whole_name
from barnabas.client.admin import Admin, TopicMetadata
from barnabas.protocol.errors import ErrorCode, KafkaError

_HELD_BY = {
    "__consumer_offsets": "the committed offsets of every group",
    "__transaction_state": "the state of every transaction and its producer",
    "__share_group_state": "the positions of every share group",
    "__barnabas_cuts": "the named cuts",
    "__barnabas_owners": "the owners of topics",
    "__barnabas_redrive": "which dead letters were sent back",
    "__barnabas_replays": "how far replays are",
    "__barnabas_sink": "the last batch of every Spark query that writes",
}


@click.command()
@topic_names
@click.option("-r", "--regex", is_flag=True, help="NAMEs are regular expressions for whole names.")
@click.option("-i", "--internal", is_flag=True, help="Also internal topics.")
@click.option("--if-exists", is_flag=True, help="Accept a topic that does not exist.")
@click.option("-d", "--dry-run", is_flag=True, help="Only show what would be deleted.")
@session_options
def delete(
    session: Session,
    names: tuple[str, ...],
    more: tuple[str, ...],
    regex: bool,
    internal: bool,
    if_exists: bool,
    dry_run: bool,
) -> None:
    """Delete topics with all their records."""
    wanted = required(names, more)
    with session.admin() as admin:
        if regex:
            wanted = _matching(admin, wanted, internal)
            if not wanted and not if_exists:
                raise Failure("no topic matches", "`barnabas topic list` shows which exist")
        done = deleted_topics(admin, wanted, internal=internal, if_exists=if_exists, dry_run=dry_run)
    done.show(session.output)


def deleted_topics(
    admin: Admin, names: list[str], *, internal: bool = False, if_exists: bool = False, dry_run: bool
) -> Done:
    """Delete topics, or check whether they exist.

    Args:
        internal: also those that hold what the cluster keeps for its clients.
        if_exists: a topic that does not exist is no failure.

    Raises:
        Failures: one is internal; nothing was deleted.
    """
    found = admin.describe_topics(names) if names else {}
    if not internal:
        _spare_internal(found)
    outcomes: dict[str, object] = {**found}
    if names and not dry_run:
        outcomes = {**admin.delete_topics(names)}
    rows, failures = [], []
    for name, outcome in outcomes.items():
        if not isinstance(outcome, KafkaError):
            rows.append((name, "would be deleted" if dry_run else "deleted"))
        elif if_exists and outcome.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            rows.append((name, "does not exist"))
        else:
            failures.append((f"topic {name}", outcome))
    return Done(found_rows(("TOPIC", "STATUS"), rows), failures)


def _matching(admin: Admin, texts: list[str], internal: bool) -> list[str]:
    patterns = [whole_name(text) for text in texts]
    existing = [each.name for each in admin.list_topics(internal=internal)]
    return [name for name in existing if any(pattern.fullmatch(name) for pattern in patterns)]


def _spare_internal(found: Mapping[str, TopicMetadata | KafkaError]) -> None:
    """Check that no topic is internal, before the first is deleted.

    Raises:
        Failures: one is.
    """
    failures = [
        Failure(
            f"topic {name} is internal, and holds {_HELD_BY.get(name, 'what the cluster keeps for its clients')}",
            "--internal deletes it all the same",
        )
        for name, each in found.items()
        if isinstance(each, TopicMetadata) and each.is_internal
    ]
    if failures:
        raise Failures(failures)
