"""Partitions as commands name them: `orders`, `orders:0,3`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from barnabas.cli.failure import Failure
from barnabas.client.admin import Admin, TopicPartition, result
from barnabas.words.printable import printable


def partitions_of(admin: Admin, texts: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions that the texts name, all of a topic if a text has no numbers.

    Raises:
        ValueError: a text is not TOPIC or TOPIC:0,1.
        Failure: a topic does not have the partition.
        KafkaError: a topic does not exist.
    """
    partitions: list[TopicPartition] = []
    for text in texts:
        topic, colon, numbers = text.partition(":")
        metadata = result(admin.describe_topics([topic])[topic])
        try:
            chosen = [int(number) for number in numbers.split(",")] if colon else range(len(metadata.partitions))
        except ValueError:
            raise ValueError(f"'{printable(text)}' is not TOPIC or TOPIC:0,1") from None
        for number in chosen:
            if not 0 <= number < len(metadata.partitions):
                raise Failure(
                    f"topic {topic} has no partition {number}", f"it has {len(metadata.partitions)}, from 0 on"
                )
        partitions += [TopicPartition(topic, number) for number in chosen]
    return sorted(set(partitions))


def named_partitions(admin: Admin, texts: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions that arguments of a command name; errors as `partitions_of`, but for a text that is not TOPIC or TOPIC:0,1.

    Raises:
        click.UsageError: a text is not TOPIC or TOPIC:0,1.
    """
    try:
        return partitions_of(admin, texts)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
