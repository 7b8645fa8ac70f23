"""`barnabas deliver`: delayed delivery as a service."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import click

from barnabas.cli.failure import Failure, Missing
from barnabas.cli.librdkafka import client_settings
from barnabas.cli.progress import on_terminal
from barnabas.cli.sending_once import explained_library
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.cli.termination import ends_cleanly
from barnabas.client.admin import Admin
from barnabas.retries import RetryingConsumer
from barnabas.retries.delivery import DELIVER_AT, deliver, delivery_policy
from barnabas.words.printable import printable


@click.command(name="deliver")
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.option(
    "--to", metavar="TOPIC", shell_complete=complete_topics, help="For records without the header deliver-to."
)
@click.option(
    "-g", "--group", default="barnabas-deliver", show_default=True, metavar="GROUP", help="The group of all instances."
)
@click.option("-X", "extra", multiple=True, metavar="PROP=VALUE", help="A librdkafka setting; repeat.")
@session_options
def deliver_(session: Session, topic: str, to: str | None, group: str, extra: tuple[str, ...]) -> None:
    """Deliver each record of a topic at the time in its header deliver-at.

    The time is epoch milliseconds or seconds, or 2026-11-27T10:00:00Z. The record waits in topics called TOPIC.retry.N, is delivered
    once, and up to a second late. What cannot be delivered goes to TOPIC.dlq. It runs until it is interrupted; several instances share
    the work.

    \b
    barnabas produce orders.delayed -H deliver-at=2026-11-27T10:00:00Z
    barnabas deliver orders.delayed --to orders
    """
    with session.admin() as admin:
        exists = _known_topics(admin)
        if not exists(topic):
            raise _no_topic(topic, "create it, and produce what shall wait to it")
        if to is not None and not exists(to):
            raise _no_topic(to, "name another with --to")
        if to == topic:
            raise Failure(
                f"records of {printable(topic)} wait there, and cannot be delivered there",
                "name another topic with --to",
            )
        settings = client_settings(session, extra, {"group.id": group})
        if on_terminal():
            click.echo(
                f"delivers the records of {printable(topic)} when their {DELIVER_AT} is due; Ctrl-C ends it", err=True
            )
        with (
            explained_library("delivery was interrupted: start it again, and it goes on"),
            suppress(KeyboardInterrupt),
            ends_cleanly(),
            RetryingConsumer(settings, [topic], delivery_policy(topic)) as consumer,
        ):
            consumer.run(deliver(to, exists, _now_ms))


def _known_topics(admin: Admin) -> Callable[[str], bool]:
    """Return a function that says whether there is a topic; it asks the broker only about topics that it does not know."""
    known: set[str] = set()

    def exists(topic: str) -> bool:
        if topic not in known:
            known.update(each.name for each in admin.list_topics(internal=True))
        return topic in known

    return exists


def _no_topic(topic: str, hint: str) -> Failure:
    return Failure(f"topic {topic} does not exist", hint, Missing("topic", topic))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
