"""A part that is absent."""

from barnabas.decoding.decoded import NULL


def test_a_null_has_no_size() -> None:
    assert (NULL.format, NULL.data, NULL.size, NULL.is_cut, NULL.note) == ("null", None, None, False, None)
