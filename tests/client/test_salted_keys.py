from __future__ import annotations

import pytest

from barnabas.client.partitioner import partition_for
from barnabas.client.salted_keys import SaltedKeys


def test_a_hot_key_takes_turns_and_others_stay() -> None:
    keys = SaltedKeys({"celebrity": 3, b"\xff": 2})
    assert [keys.salted("celebrity") for _ in range(4)] == [
        b"celebrity-0",
        b"celebrity-1",
        b"celebrity-2",
        b"celebrity-0",
    ]
    assert [keys.salted(b"\xff") for _ in range(2)] == [b"\xff-0", b"\xff-1"]
    assert keys.salted("somebody") == b"somebody"
    assert keys.salted("somebody-1") == b"somebody-1"


def test_the_reader_takes_away_what_was_added_and_nothing_else() -> None:
    keys = SaltedKeys({"celebrity": 3})
    for key in (b"celebrity", b"somebody", b"somebody-1", b"celebrity-3", b"celebrity-", b""):
        assert keys.original(keys.salted(key)) == key
    assert keys.original("celebrity-2") == b"celebrity"


def test_a_key_that_looks_like_a_salted_one_is_refused() -> None:
    keys = SaltedKeys({"user": 3})
    with pytest.raises(
        ValueError, match=r"the key 'user-1' is also what the hot key 'user' becomes: rename one of them"
    ):
        keys.salted("user-1")
    with pytest.raises(ValueError, match=r"the key 'user-1' is also what the hot key 'user' becomes"):
        SaltedKeys({"user": 3, "user-1": 2})
    with pytest.raises(ValueError, match=r"the hot key 'user' needs two salts or more"):
        SaltedKeys({"user": 1})


@pytest.mark.parametrize("partitioner", ["murmur2_random", "consistent_random"])
def test_partitions_of_a_key(partitioner: str) -> None:
    keys = SaltedKeys({"celebrity": 3})
    used = {partition_for(keys.salted("celebrity"), 12, partitioner) for _ in range(3)}
    assert keys.partitions("celebrity", 12, partitioner) == used
    assert keys.partitions("somebody", 12, partitioner) == {partition_for(b"somebody", 12, partitioner)}


def test_a_key_that_may_be_anywhere_is_in_all_partitions() -> None:
    assert SaltedKeys({"celebrity": 3}).partitions("", 4, "consistent_random") == {0, 1, 2, 3}
