"""The input of a plan: the stream, its readers, and the rates of one partition, consumer and broker."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.planning.sums import DAY_S, at_least, grown


@dataclass(frozen=True)
class Workload:
    """A topic's stream and the machines that carry it; the defaults are the public rules of thumb.

    Attributes:
        rate: bytes of records a second now, before compression.
        record_size: bytes of a record, before compression.
        compression: how many times smaller records are on the wire and on disk.
        growth: percent a year.
        years: that the plan must last.
        retention_s: how long records stay.
        replicas: of each partition.
        groups: of consumers; each reads everything.
        consumers: of the largest group; None for as many as their speed asks for, or one.
        consumer_rate: records a second that one consumer handles; None if it is not known.
        partition_rate: bytes a second that one partition takes.
        broker_rate: bytes a second that one broker takes in, or gives out.
        broker_disk: bytes of one broker's disk.
        segment: bytes of a segment file, as `segment.bytes`.
        price: of a gigabyte of disk a month.
        brokers: how many there are; None if the plan may choose.
    """

    rate: float
    record_size: float = 1000
    compression: float = 1
    growth: float = 0
    years: float = 1
    retention_s: float = 7 * DAY_S
    replicas: int = 3
    groups: int = 1
    consumers: int | None = None
    consumer_rate: float | None = None
    partition_rate: float = 25e6
    broker_rate: float = 200e6
    broker_disk: float = 10e12
    segment: float = 1 << 30
    price: float = 0.02
    brokers: int | None = None

    @property
    def produced(self) -> float:
        """The bytes a second at the end of the years, before compression."""
        return grown(self.rate, self.growth, self.years)

    @property
    def records(self) -> float:
        """The records a second at the end of the years."""
        return self.produced / self.record_size

    @property
    def stream(self) -> float:
        """The compressed bytes a second at the end of the years."""
        return self.produced / self.compression

    @property
    def members(self) -> int:
        """The consumers of the largest group."""
        if self.consumers is not None:
            return self.consumers
        return 1 if self.consumer_rate is None else at_least(self.records, self.consumer_rate)
