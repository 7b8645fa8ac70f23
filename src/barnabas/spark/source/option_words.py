"""The names that the options of a reader have for its user; errors name them.

The source is an option table of Spark's. `barnabas.read` and `barnabas sql` read through the same code, and their users
know other names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionWords:
    """How errors name options.

    Attributes:
        starting, ending: where reading begins and ends.
        patience: how long records may not arrive.
        uncommitted: the option and its value that read open transactions.
        skips: the condition under which reading continues without records that are gone.
        gone: what to do about records that are gone, in whole sentences.
    """

    starting: str
    ending: str
    patience: str
    uncommitted: str
    skips: str
    gone: str


SPARK = OptionWords(
    starting="startingOffsets",
    ending="endingOffsets",
    patience="kafkaConsumer.pollTimeoutMs",
    uncommitted="kafka.isolation.level=read_uncommitted",
    skips="failOnDataLoss is false",
    gone=(
        "Some data may have been lost because they are not available in Kafka any more; either the data was aged out by "
        "Kafka or the topic may have been deleted before all the data in the topic was processed. If you don't want your "
        'streaming query to fail on such cases, set the source option "failOnDataLoss" to "false".'
    ),
)
