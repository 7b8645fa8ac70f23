"""What came of a run: its history, and what the checkers found in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from barnabas.protocol.errors import KafkaError
from barnabas.simulation.timeline import Timeline
from barnabas.simulation.world import World
from barnabas.simulation.world_loop import Stuck
from tests.simulation import checkers
from tests.simulation.history import History
from tests.simulation.transactions import Refused
from tests.simulation.workload import LOST


@dataclass
class Result:
    """One run and its judgement.

    Attributes:
        plan: what its seed meant.
        met: its faults, in words.
        violations: what each checker found, without those that found nothing.
    """

    plan: Any
    history: History
    timeline: Timeline
    met: str
    violations: dict[str, list[str]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.violations

    def counts(self) -> Counter[str]:
        """Return how often things happened whose absence would make the run worthless."""
        acknowledged = sum(batch.acknowledged_at is not None for batch in self.history.batches)
        counts = Counter({"crashes": len(self.history.crashes), "acknowledged batches": acknowledged})
        return counts + self.history.tally()

    def summary(self) -> str:
        acknowledged = sum(batch.acknowledged_at is not None for batch in self.history.batches)
        outcome = "clean" if self.passed else f"VIOLATED {', '.join(self.violations)}"
        tally = "".join(f"; {count} {what}" for what, count in self.history.tally().items() if count)
        return f"seed {self.plan.seed}: {outcome}; {acknowledged} batches acknowledged; {self.met}{tally}"


def played(
    plan: Any,
    world: World,
    story: Coroutine[Any, Any, None],
    history: History,
    *,
    seconds: float,
    met: Callable[[], str],
    may_forget_producers: bool = False,
) -> Result:
    """Play a story to its end, and judge its history.

    Args:
        seconds: how long it may take in the world's time.
        met: returns its faults, in words, when it has been played.
        may_forget_producers: a power cut may take the records of a producer, so that the broker no longer knows it.
    """
    try:
        world.play(story, seconds=seconds)
    except Stuck as stuck:
        history.errors.append(str(stuck))
    except (AssertionError, KafkaError, Refused, *LOST) as error:
        history.errors.append(f"the run broke off: {error!r}")
    history.errors += world.errors
    if not may_forget_producers:
        history.errors += history.lost_identities
    found = {name: check(history) for name, check in checkers.ALL.items()}
    return Result(plan, history, world.timeline, met(), {name: each for name, each in found.items() if each})
