"""What works beside the producers and groups of an exchange: the steps of its life, which the exchange calls in order."""

from __future__ import annotations

from collections.abc import Sequence

from tests.cluster.exchange_judge import Verdict


class Companion:
    """An application of its own kind.

    Attributes:
        name: as the results print it.
    """

    name: str

    def begin(self) -> None:
        """Start it, and wait until it works."""
        raise NotImplementedError

    def await_progress(self) -> None:
        """Wait until it has done something after this moment; called after each change of a node."""
        raise NotImplementedError

    def finish(self, ends: Sequence[int]) -> Verdict:
        """Let it come to its end, and judge it.

        Args:
            ends: of the partitions of the producer's topic, to which nobody writes any more.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End its processes and threads, in whatever state it is."""
        raise NotImplementedError
