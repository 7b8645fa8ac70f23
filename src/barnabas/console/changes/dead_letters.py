"""Dead letters that go back to their topics: `barnabas dlq redrive`, so many with each form.

The preview fixes which ones: those before an offset of each partition. The engine sends each once, however often a form is sent.
"""

from __future__ import annotations

from barnabas.cli.dead_letters import Chosen, parse_filter
from barnabas.cli.dlq_redrive import redriven_letters
from barnabas.cli.done import Done
from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import connection_of
from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.wording import as_typed, counted
from barnabas.client.admin import Admin, TopicPartition
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.changes.topics import described
from barnabas.console.page import Field
from barnabas.retries.redrive import DeadLetter
from barnabas.words.printable import printable

SENT_MAX = 10_000
"""So many are sent while a browser waits."""
READ_MAX = 2_000_000
KEPT_BYTES_MAX = 64_000_000
"""The dead letters of a plan are kept until they are sent, unless they are larger."""
FIELDS = (
    Field("topic", "Topic of dead letters", is_required=True),
    Field("filters", "Only those with, a line each", kind="lines", hint="error=TimeoutError or topic=orders"),
    Field("to", "Topic to send them to", hint="where each came from"),
    Field("limit", "At most", hint=str(SENT_MAX)),
    Field("places", "Offsets of the preview", kind="hidden"),
)


class Bounded:
    """Chooses dead letters: so many, or those up to the last one of each partition that was chosen before.

    Args:
        last: by partition, the offset; None to find it.
    """

    def __init__(self, chosen: Chosen, most: int, last: dict[int, int] | None = None) -> None:
        self._chosen = chosen
        self._most = most
        self._is_fixed = last is not None
        self.last = {} if last is None else last
        self.count = 0
        self.left = 0
        """How many more pass the filter."""
        self.letters: list[DeadLetter] | None = []
        """Those that are to be sent; None if they are too large to keep."""
        self._kept_bytes = 0

    def __repr__(self) -> str:
        return f"<Bounded count={self.count} left={self.left}>"

    def __call__(self, letter: DeadLetter) -> bool:
        """Return whether a dead letter is to be sent."""
        if not self._chosen(letter):
            return False
        at = letter.record
        is_in = at.offset <= self.last.get(at.partition, -1) if self._is_fixed else self.count < self._most
        self.count += is_in
        self.left += not is_in
        if is_in:
            self._keep(letter)
            if not self._is_fixed:
                self.last[at.partition] = at.offset
        return is_in

    def _keep(self, letter: DeadLetter) -> None:
        at = letter.record
        headers = sum(len(name) + len(value or b"") for name, value in at.headers)
        self._kept_bytes += len(at.key or b"") + len(at.value or b"") + headers
        if self._kept_bytes > KEPT_BYTES_MAX:
            self.letters = None
        if self.letters is not None:
            self.letters.append(letter)


def redrive(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan that dead letters go back; the preview fixes which."""
    name = given.required("topic", "the topic")
    chosen = parse_filter(tuple(given.lines("filters")))
    most = given.number("limit", "the limit", least=1, most=SENT_MAX) or SENT_MAX
    to = given.text("to").strip() or None
    _require_few(admin, name)
    bounded = Bounded(chosen, most, _places(given.text("places")))
    preview = redriven_letters(connection_of(admin), admin, name, bounded, None, to, dry_run=True)
    last = dict(bounded.last)

    def carried_out(admin: Admin, given: Given) -> Done:
        # The plan was made a moment ago, and has read the topic.
        again = Bounded(chosen, most, last)
        done = redriven_letters(
            connection_of(admin), admin, name, again, None, to, dry_run=False, letters=bounded.letters
        )
        return done._replace(notes=[_left(bounded.left)])

    return Planned(
        f"Redrive {counted(bounded.count, 'dead letter')} of {printable(name)}",
        f"topic {name}",
        preview._replace(notes=[_left(bounded.left), "each is sent once, also if another redrive sends it first"]),
        carried_out,
        fixed={"places": " ".join(f"{partition}:{offset}" for partition, offset in sorted(last.items()))},
        after=("dead-letters", {"topic": name}),
    )


def _left(count: int) -> str:
    return (
        f"{counted(count, 'dead letter')} with these filters {'is' if count == 1 else 'are'} left for another redrive"
    )


def _require_few(admin: Admin, name: str) -> None:
    """Require a topic that can be read while a browser waits.

    Raises:
        Failure: it has too many records.
    """
    topic = described(admin, name)
    bounds = log_bounds(admin, [TopicPartition(name, each) for each in range(len(topic.partitions))])
    count = sum((end or 0) - (start or 0) for start, end in bounds.values())
    if count > READ_MAX:
        raise Failure(
            f"topic {name} has {count} offsets, and the console reads {READ_MAX}",
            f"`barnabas dlq redrive {as_typed(name)}` reads all",
        )


def _places(text: str) -> dict[int, int] | None:
    if not text:
        return None
    try:
        return {int(partition): int(offset) for partition, offset in (each.split(":") for each in text.split())}
    except ValueError:
        raise BadForm("the offsets of the preview are not PARTITION:OFFSET") from None
