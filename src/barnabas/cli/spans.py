"""The offsets that `--offset` means in each partition of topics, asked before reading."""

from __future__ import annotations

from barnabas.cli.failure import Failure
from barnabas.cli.log_bounds import Bounds, offsets_of
from barnabas.cli.offset_grammar import Range, Span
from barnabas.client.admin import EARLIEST, LATEST, Admin, TopicPartition, result


def partition_counts(admin: Admin, names: list[str]) -> dict[str, int]:
    """Return how many partitions topics have.

    Raises:
        KafkaError: a topic does not exist.
    """
    return {name: len(result(found).partitions) for name, found in admin.describe_topics(names).items()}


def spans_of(
    admin: Admin, names: list[str], chosen: list[int], wanted: Range, isolation: int
) -> dict[TopicPartition, Span]:
    """Return where to begin and end in each partition.

    Args:
        chosen: only these partitions of each topic; all if it is empty.
        isolation: READ_COMMITTED ends at the last stable offset.

    Raises:
        Failure: a partition does not exist.
        KafkaError: a topic does not exist, or a leader does not answer.
    """
    partitions = []
    for name, total in partition_counts(admin, names).items():
        for number in chosen:
            if number >= total:
                raise Failure(f"topic {name} has no partition {number}", f"it has {total}, from 0 on")
        partitions += [TopicPartition(name, number) for number in (chosen or range(total))]
    starts = admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
    ends = admin.list_offsets(dict.fromkeys(partitions, LATEST), isolation_level=isolation)

    bounds: dict[TopicPartition, Bounds] = {
        each: (result(starts[each]).offset, result(ends[each]).offset) for each in partitions
    }
    begin = offsets_of(admin, wanted.begin, bounds)
    end = offsets_of(admin, wanted.end, bounds) if wanted.end is not None else {}
    return {each: Span(begin[each], end.get(each), result(ends[each]).offset) for each in partitions}
