"""`python -m shop`: the commands of the shop's pipeline. Type them in the project's folder."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import click

from shop.new import new
from shop.project import Project, ProjectError
from shop.run import run
from shop.streams import FROM_TABLES, FROM_TOPICS

_STOPS_WITHIN_S = 120.0


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ProjectError as error:
            raise click.ClickException(str(error)) from None


@click.group(cls=_Commands)
def shop() -> None:
    """Run a shop's pipeline on Spark. All but "new" work in the current folder, which "new" has made."""


@shop.command("new")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--beside", is_flag=True, help="Even if other files are there.")
def new_command(folder: Path, beside: bool) -> None:
    """Copy this project into a new folder, yours to change."""
    if folder.exists() and any(folder.iterdir()) and not beside:
        raise ProjectError(f"{folder} is not empty (name a new folder)")
    click.echo(f"the shop's pipeline is in {new(folder)}")


@shop.command("run")
@click.option("-b", "--bootstrap-server", default="localhost:9092", show_default=True, help="A broker.")
@click.option(
    "--master", help="Where Spark runs, such as local[2] or spark://HOST:7077. Default: as spark-submit says."
)
@click.option("--every", default=1.0, show_default=True, help="Seconds between two batches of a query.")
@click.option("--once", is_flag=True, help="Read what is in the topics now, and end.")
@click.option("--metrics", type=click.IntRange(0, 65535), metavar="PORT", help="Serve metrics for Prometheus here.")
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; may be given again.")
def run_command(
    bootstrap_server: str, master: str | None, every: float, once: bool, metrics: int | None, conf: tuple[str, ...]
) -> None:
    """Run the queries until `shop stop`; one that fails starts again."""
    settings = dict(each.split("=", 1) for each in conf)
    run(Project(Path()), bootstrap_server, master, settings, 0.0 if once else every, metrics)


@shop.command()
def status() -> None:
    """Show how far each query is, and the alarms."""
    project = Project(Path())
    seen = project.status()
    runner = project.runner()
    if seen is None:
        raise ProjectError("the shop has never run here (`python -m shop run` starts it)")
    age_s = time.time() - seen["at"]
    click.echo(f"runs as process {runner}" if runner else f"does not run; this is how it was {age_s:.0f} s ago")
    click.echo(
        f"{'query':16}{'state':10}{'batch':>7}{'rows':>12}{'rejected':>10}{'late':>7}{'behind':>10}{'restarts':>10}"
    )
    for query in seen["queries"]:
        numbers = "{batch:>7,}{rows:>12,}{rejected:>10,}{dropped:>7,}{lag:>10,}{restarts:>10,}".format(**query)
        click.echo(f"{query['name']:16}{query['state'] if runner else 'stopped':10}{numbers}")
    for alarm in seen["alarms"]:
        click.echo(f"ALARM: {alarm}")


@shop.command()
def stop() -> None:
    """Stop the queries after the batch they are in."""
    project = Project(Path())
    runner = project.runner()
    if runner is None:
        raise ProjectError("the shop does not run here")
    os.kill(runner, signal.SIGTERM)
    deadline_s = time.monotonic() + _STOPS_WITHIN_S
    while project.runner() is not None:
        if time.monotonic() > deadline_s:
            raise ProjectError(f"process {runner} still runs (its log says why)")
        time.sleep(0.2)
    click.echo("stopped")


@shop.command()
@click.option("--to", required=True, help="earliest, latest, or a moment such as 2026-11-22T08:00 or -2h.")
def reset(to: str) -> None:
    """Begin again with empty tables; the old ones are put aside."""
    project = Project(Path())
    with project.lock():
        click.echo(f"the next run begins at {to}; the tables and checkpoints until now are in {project.reset(to)}")


@shop.command()
@click.argument("query", type=click.Choice(FROM_TABLES))
def upgrade(query: str) -> None:
    """Let changed code of a query with state start over, with an empty table; other queries go on by themselves."""
    project = Project(Path())
    with project.lock():
        click.echo(f"{query} starts over, with an empty table; what it had is in {project.upgrade(query)}")


@shop.command()
@click.argument("query", type=click.Choice(tuple(FROM_TOPICS)))
def positions(query: str) -> None:
    """Print where a query will go on, as startingOffsets for another."""
    found = Project(Path()).positions(query)
    if found is None:
        raise ProjectError(f"{query} has finished no batch yet")
    click.echo(found)


if __name__ == "__main__":
    shop(prog_name="shop")
