"""Hypothesis strategies for records, shared by the tests of this room."""

from hypothesis import settings
from hypothesis import strategies as st

from barnabas.records.compression import Compression

bounded = settings(max_examples=60, deadline=None, derandomize=True)

timestamps = st.integers(min_value=-1, max_value=2**60)
optional_bytes = st.one_of(st.none(), st.binary(max_size=300))
# Sizes on both sides of each step of a varint: one byte holds up to 63, two bytes up to 8191.
SIZES = [0, 1, 40, 62, 63, 64, 65, 127, 128, 300, 8190, 8191, 8192, 8193]
headers = st.lists(st.tuples(st.text(max_size=12), optional_bytes), max_size=3)
records = st.lists(st.tuples(timestamps, optional_bytes, optional_bytes, headers), min_size=1, max_size=12)
codecs = st.sampled_from(list(Compression))
