"""Hot keys, spread over several partitions: a key with a salt is another key, and the reader takes the salt away.

    keys = SaltedKeys({"celebrity": 3})
    producer.produce("likes", value, keys.salted("celebrity"))      # celebrity-0, celebrity-1, celebrity-2, celebrity-0, …
    totals[keys.original(message.key())] += 1                       # b"celebrity"

Only the hot keys get a salt, all others stay as they are. The records of a hot key lose their order: use this for what is
counted or summed, not for the events of one entity. Producers and readers need the same hot keys and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from barnabas.client.partitioner import DEFAULT_PARTITIONER, partition_for


class SaltedKeys:
    """The hot keys of a topic, and how many keys each one becomes.

    Args:
        salts: the number of keys that each hot key becomes, two or more. A key of type str is its UTF-8 bytes.

    Raises:
        ValueError: a number is below two, or a hot key is what another hot key becomes.

    One object may serve several threads.
    """

    def __init__(self, salts: Mapping[str | bytes, int]) -> None:
        self.forms: Mapping[bytes, tuple[bytes, ...]] = {
            _bytes(key): forms_of(_bytes(key), number) for key, number in salts.items()
        }
        """The keys that each hot key becomes."""
        for key, forms in self.forms.items():
            if len(forms) < 2:
                raise ValueError(f"the hot key {text(key)} needs two salts or more")
        self._originals = {form: key for key, forms in self.forms.items() for form in forms}
        for key in self.forms:
            self._refuse_a_form(key)
        self._turns = {key: count() for key in self.forms}

    def salted(self, key: str | bytes) -> bytes:
        """Return the key to produce a record with: a hot key's forms take turns.

        Raises:
            ValueError: a key is what a hot key becomes; no reader could tell the two apart.
        """
        found = _bytes(key)
        forms = self.forms.get(found)
        if forms is None:
            self._refuse_a_form(found)
            return found
        return forms[next(self._turns[found]) % len(forms)]

    def original(self, key: str | bytes) -> bytes:
        """Return the key without its salt."""
        found = _bytes(key)
        return self._originals.get(found, found)

    def partitions(self, key: str | bytes, count: int, partitioner: str = DEFAULT_PARTITIONER) -> set[int]:
        """Return the partitions that hold a key, of a topic with so many; a reader of this key needs no other one.

        Args:
            key: a key without salt.
            count: the number of partitions of the topic.
            partitioner: the producers' partitioner; confluent-kafka's default is `consistent_random`.
        """
        found = _bytes(key)
        chosen = {partition_for(form, count, partitioner) for form in self.forms.get(found, (found,))}
        return set(range(count)) if None in chosen else {each for each in chosen if each is not None}

    def _refuse_a_form(self, key: bytes) -> None:
        if key in self._originals:
            hot = text(self._originals[key])
            raise ValueError(f"the key {text(key)} is also what the hot key {hot} becomes: rename one of them")


def forms_of(key: bytes, salts: int) -> tuple[bytes, ...]:
    """Return the keys that a hot key becomes: `k-0`, `k-1`, …"""
    return tuple(b"%b-%d" % (key, salt) for salt in range(salts))


def _bytes(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else bytes(key)


def text(key: bytes) -> str:
    """Return a key for a sentence, in quotation marks."""
    return repr(key.decode(errors="backslashreplace"))
