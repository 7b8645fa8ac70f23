"""`barnabas claims`: the payloads that records name by claims: sweep, audit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from barnabas.claims.audit import Audited
from barnabas.claims.audit import audit as audit_claims
from barnabas.claims.claim import prefix_of
from barnabas.claims.errors import ClaimError, NoClaims
from barnabas.claims.payload_store import PayloadStore
from barnabas.claims.store import open_store
from barnabas.claims.sweep import SHORTEST_GRACE_MS, Swept
from barnabas.claims.sweep import sweep as sweep_payloads
from barnabas.claims.topic_records import topic_records, with_uncertain_ends
from barnabas.cli.duration import Duration
from barnabas.cli.failure import Failure, Quiet
from barnabas.cli.output import Table
from barnabas.cli.progress import Measured, shown
from barnabas.cli.session import Session, complete_topics, parse_pairs, session_options
from barnabas.cli.termination import ends_cleanly
from barnabas.cli.wording import counted
from barnabas.client.admin import Admin, result
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.words.byte_sizes import format_bytes
from barnabas.words.printable import printable

_SWEPT = (
    "RECORDS",
    "CLAIMS",
    "PAYLOADS",
    "NAMED",
    "YOUNG",
    "SPARED",
    "DELETED",
    "DELETED-BYTES",
    "UNFINISHED",
    "STATUS",
)
_HIDDEN_FIRST = ("UNFINISHED", "SPARED", "RECORDS", "DELETED-BYTES", "YOUNG", "NAMED")
_CLUSTER = "give --cluster as the producers have it"
_AUDITED = ("RECORDS", "CLAIMS", "WRONG", "PAYLOAD-BYTES")
_ERRORS = ("TOPIC", "PARTITION", "OFFSET", "WHAT")


@click.group()
def claims() -> None:
    """Large messages by reference: delete payloads that no record names, check the others."""


def _of_a_store(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--storage",
            multiple=True,
            metavar="KEY=VALUE",
            help="An option of the object store, such as aws_endpoint; repeat.",
        ),
        click.option("--store", "uri", required=True, metavar="URI", help="A folder, s3://BUCKET/PREFIX, …"),
        click.argument("topics", nargs=-1, metavar="TOPIC…", shell_complete=complete_topics),
    ):
        function = option(function)
    return function


@claims.command()
@_of_a_store
@click.option(
    "--older-than",
    "grace_ms",
    type=Duration(),
    default="24h",
    show_default=True,
    help="Keep younger payloads: their records may still be on the way.",
)
@click.option("--without-claims", is_flag=True, help="Delete payloads also if the topics have no claim at all.")
@click.option("--deleted-topics", is_flag=True, help="Also the payloads of all topics that do not exist any more.")
@click.option("--cluster", help="The name that producers were given for the cluster.  [default: the cluster's id]")
@click.option("-d", "--dry-run", is_flag=True, help="Only count what would be deleted.")
@session_options
def sweep(
    session: Session,
    topics: tuple[str, ...],
    uri: str,
    storage: tuple[str, ...],
    grace_ms: int,
    without_claims: bool,
    deleted_topics: bool,
    cluster: str | None,
    dry_run: bool,
) -> None:
    """Delete the payloads of topics that no record names.

    It reads all records of the topics, and of topics called TOPIC.… (retries, dead letters). Name every other topic
    that claims were copied to, too. A sweep that was interrupted did no harm: run it again.

    \b
    barnabas claims sweep videos --store s3://payloads/kafka --dry-run
    barnabas claims sweep videos videos-test --store /srv/payloads
    """
    if not topics and not deleted_topics:
        raise click.UsageError("Missing argument 'TOPIC…'.")
    if grace_ms < SHORTEST_GRACE_MS:
        raise click.BadParameter(
            "a producer may send the record of a payload up to its delivery timeout later: give 10m or more",
            param_hint="--older-than",
        )
    began_s = time.monotonic()
    now_ms = time.time_ns() // 1_000_000
    swept = Swept()
    with ends_cleanly(), _explained(), session.admin() as admin:
        store = open_store(uri, parse_pairs(storage, "--storage"))
        for outcome in admin.describe_topics(topics).values():
            result(outcome)
        name = _cluster_name(admin, cluster)
        swept_topics = list(topics) + (_deleted_topics(admin, store, name) if deleted_topics else [])
        read = _read_topics(admin, topics, swept_topics)
        if uncertain := with_uncertain_ends(admin, read):
            raise Failure(
                f"partition {uncertain[0]} has fewer replicas in sync than min.insync.replicas, so it may have records"
                " that no reader sees yet",
                "start the other brokers, then sweep; `barnabas cluster status` says which are down",
            )
        with shown(lambda: Measured(f"{swept.records:,} records  {swept.deleted:,} payloads deleted")):
            sweep_payloads(
                store,
                [prefix_of(name, each) for each in dict.fromkeys(swept_topics)],
                lambda: topic_records(admin, read),
                now_ms=now_ms,
                grace_ms=grace_ms,
                elapsed_ms=lambda: (time.monotonic() - began_s) * 1000,
                without_claims=without_claims or not topics,
                dry_run=dry_run,
                swept=swept,
            )
        _report_sweep(session, swept, store, swept_topics, read, dry_run=dry_run)


def _report_sweep(
    session: Session, swept: Swept, store: PayloadStore, topics: list[str], read: list[str], *, dry_run: bool
) -> None:
    """Print what a sweep saw and did.

    Raises:
        Failure: the store cannot be the one of these topics.
    """
    if not topics:
        raise Failure(
            f"{printable(store.uri)} has no payload of a topic that was deleted", "name topics to sweep theirs"
        )
    named = printable(", ".join(topics))
    if not swept.payloads and not swept.unfinished:
        if swept.claims:
            raise Failure(
                f"{printable(store.uri)} has no payload of {named}, which has {counted(swept.claims, 'claim')}",
                "is it another store, or another --cluster? An audit says which payloads are gone",
            )
        raise Failure(
            f"there is no claim in {named}, and no payload of it in {printable(store.uri)}",
            f"is it another topic or store? {counted(swept.records, 'record')} were read",
        )
    status = "would be deleted" if dry_run else "deleted"
    row = (
        swept.records, swept.claims, swept.payloads, swept.named, swept.young, swept.spared, swept.deleted,
        swept.deleted_bytes, swept.unfinished, status,
    )  # fmt: skip
    table = Table(_SWEPT, [row], hidden_first=_HIDDEN_FIRST)
    data = table.objects()[0] | {"invalid_claims": swept.invalid_claims, "others": swept.others, "read": read}
    session.output.show(data, table)
    if more := [each for each in read if each not in topics]:
        click.echo(f"read too: {printable(', '.join(more))}", err=True)
    if swept.invalid_claims:
        click.echo(
            f"{counted(swept.invalid_claims, 'claim')} cannot be read: an audit of the same topics says why", err=True
        )
    if swept.others:
        click.echo(f"{counted(swept.others, 'file')} there are no payloads, and stay", err=True)


@claims.command()
@_of_a_store
@click.option(
    "--sizes-only", is_flag=True, help="Do not read the payloads; a damaged one of the right size is not found."
)
@session_options
def audit(session: Session, topics: tuple[str, ...], uri: str, storage: tuple[str, ...], sizes_only: bool) -> None:
    """Check that the payload of each claim is there and whole.

    The exit code is 0 if so, 1 otherwise. It reads each payload and compares its SHA-256.

    \b
    barnabas claims audit videos --store s3://payloads/kafka
    """
    if not topics:
        raise click.UsageError("Missing argument 'TOPIC…'.")
    audited = Audited()
    with ends_cleanly(), _explained(), session.admin() as admin:
        store = open_store(uri, parse_pairs(storage, "--storage"))

        def measure() -> Measured:
            return Measured(f"{audited.claims:,} claims  {format_bytes(audited.payload_bytes)}")

        with shown(measure):
            audit_claims(
                store, topic_records(admin, list(dict.fromkeys(topics))), sizes_only=sizes_only, audited=audited
            )
    if not audited.claims:
        raise Failure(
            f"there is no claim in {printable(', '.join(topics))}", f"{counted(audited.records, 'record')} were read"
        )
    counts = Table(_AUDITED, [(audited.records, audited.claims, audited.wrong, audited.payload_bytes)])
    rows = [(each.topic, each.partition, each.offset, str(each)) for each in audited.errors]
    errors = Table(_ERRORS, rows, below=("WHAT",))
    session.output.show(
        counts.objects()[0] | {"errors": errors.objects()}, counts, *([errors] if audited.errors else [])
    )
    if audited.wrong > len(audited.errors):
        click.echo(f"only the first {len(audited.errors)} are shown", err=True)
    if audited.wrong:
        raise Quiet


def _read_topics(admin: Admin, topics: tuple[str, ...], swept: list[str]) -> list[str]:
    """Return the topics whose records a sweep reads: the named ones, and those with copies of the swept ones' records.

    These are retries and dead letters, whose names begin with the topic's name and a dot.
    """
    wanted = list(dict.fromkeys(topics))
    more = {each.name for each in admin.list_topics() if each.name.startswith(tuple(f"{name}." for name in swept))}
    return wanted + sorted(more - set(wanted))


def _deleted_topics(admin: Admin, store: PayloadStore, cluster: str) -> list[str]:
    """Return the topics that have payloads and do not exist.

    Raises:
        KafkaError: a broker does not say whether one exists.
    """
    found = sorted({path.split("/")[1] for path in (each.path for each in store.list(cluster)) if path.count("/") > 1})
    deleted = []
    for name, outcome in admin.describe_topics(found).items():
        # One that this user may not see is no deleted one.
        if isinstance(outcome, KafkaError) and outcome.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            deleted.append(name)
        else:
            result(outcome)
    return deleted


def _cluster_name(admin: Admin, given: str | None) -> str:
    """Return the first part of payloads' paths.

    Raises:
        Failure: the broker did not name its cluster, or the given name cannot begin a path.
    """
    name = given or admin.describe_cluster().cluster_id
    if name is None:
        raise Failure("the broker did not name its cluster", _CLUSTER)
    try:
        prefix_of(name, "any-topic")
    except ValueError as error:
        raise Failure(str(error), _CLUSTER) from None
    return name


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except NoClaims as error:
        raise Failure(str(error), "--without-claims deletes them") from None
    except ClaimError as error:
        raise Failure(str(error)) from None
