"""`barnabas topic which-partition`: where the partitioner of each client library puts a key."""

from __future__ import annotations

import click

from barnabas.cli.output import Table
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.client.admin import result
from barnabas.client.partitioner import LIBRARY_DEFAULTS, PARTITIONERS, partition_for


@click.command(name="which-partition")
@click.argument("name", metavar="TOPIC", shell_complete=complete_topics)
@click.argument("keys", nargs=-1, required=True, metavar="KEY…")
@click.option("--partitioner", help="Only this one.  [default: the default of each client library]")
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="Compute for this many, without a broker.")
@session_options
def which_partition(
    session: Session, name: str, keys: tuple[str, ...], partitioner: str | None, partitions: int | None
) -> None:
    """Show which partition of TOPIC each KEY goes to.

    Client libraries disagree: Java and librdkafka write the same key to different partitions.
    """
    if partitioner is not None and partitioner not in PARTITIONERS:
        raise click.BadParameter(f"{partitioner!r} is not one of {', '.join(PARTITIONERS)}", param_hint="--partitioner")
    if partitions is None:
        with session.admin() as admin:
            partitions = len(result(admin.describe_topics([name])[name]).partitions)
    chosen = [partitioner] if partitioner else list(LIBRARY_DEFAULTS)
    found = [
        (key, partition_for(key.encode(), partitions, each), each, LIBRARY_DEFAULTS.get(each))
        for key in keys
        for each in chosen
    ]
    data = Table(("KEY", "PARTITION", "PARTITIONER", "DEFAULT-OF"), found).objects()
    rows = [(*row, None if clients is None else f"default of {clients}") for *row, clients in found]
    table = Table(("KEY", "PARTITION", "PARTITIONER", "CLIENTS"), rows, below=("CLIENTS",))
    session.output.show(data, table)
