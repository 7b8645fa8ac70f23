"""Where a batch begins and ends: both are fixed before the first record is read.

Records that are asked for by offset and that the log does not have are data loss, see `data_loss`: a beginning before
the log's is found by the fetch, an end after the log's is found here.
"""

from __future__ import annotations

from barnabas.spark.source.data_loss import Loss, LossReports
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.offsets import ByCut, ByGroup, Position, Specific
from barnabas.spark.source.options import SourceOptions


def batch_range(reader: OffsetReader, options: SourceOptions) -> tuple[Position, Position]:
    """Return the offsets of all partitions at which a batch begins and ends.

    Raises:
        ValueError: it begins after its end, or where it begins or ends does not fit the partitions.
        DataLoss: the log does not reach the end, and `failOnDataLoss` is true.
        KafkaError: a topic does not exist, or no broker responds.
    """
    losses = LossReports(options)
    losses.check()
    start = reader.start(reader.partitions())
    end = _within_the_log(reader, losses, options, reader.end(start))
    _check_order(start, end, options)
    return start, end


def _check_order(start: Position, end: Position, options: SourceOptions) -> None:
    """Raise the error of Spark's own source for a batch that begins after its end."""
    for (topic, partition), offset in sorted(start.items()):
        if offset > end[topic, partition]:
            raise ValueError(
                f"The resolved start offset {offset} is greater than the resolved end offset {end[topic, partition]} for "
                f"topic {topic} partition {partition}. Correct {options.words.starting} or {options.words.ending}; if they "
                "are right, the topic was deleted and created again."
            )


def _within_the_log(reader: OffsetReader, losses: LossReports, options: SourceOptions, end: Position) -> Position:
    """Return the ends of the batch; an offset that was given and that the log does not reach is data loss."""
    if not isinstance(options.ending, Specific | ByGroup | ByCut):
        return end
    latest = reader.settled(
        lambda: reader.high_watermarks(end),
        lambda found: all(found[each] >= offset for each, offset in end.items()),
    )
    for (topic, partition), offset in sorted(end.items()):
        if offset > latest[topic, partition]:
            losses.report(
                f"Could not read records in offset [{latest[topic, partition]}, {offset}) for topic partition "
                f"{topic}-{partition}: it ends before {options.words.ending}",
                [Loss(topic, partition, latest[topic, partition], offset)],
            )
    return {each: min(offset, latest[each]) for each, offset in end.items()}
