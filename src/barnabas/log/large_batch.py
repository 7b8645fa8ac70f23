"""Tells which batches are too large to be opened on the event loop, from their headers alone."""

from __future__ import annotations

from barnabas.log.log_config import INT64_MAX
from barnabas.records.compression import Compression
from barnabas.records.record_batch import COMPRESSION_MASK, BatchHeader

__all__ = ["is_large"]

RECORDS_ON_THE_SPOT = 500
BYTES_ON_THE_SPOT = 4096
ZSTD_BYTES_ON_THE_SPOT = 512
"""Batches of more records, or of more compressed bytes, are large. 4 KB of gzip open into at most 4 MB, 512 bytes of zstd into 16 MB."""


def is_large(header: BatchHeader, max_bytes: int = INT64_MAX) -> bool:
    """Return whether a batch has many records, may open into many bytes, or is itself larger than `max_bytes`."""
    codec = header.attributes & COMPRESSION_MASK
    if codec:
        max_bytes = min(max_bytes, ZSTD_BYTES_ON_THE_SPOT if codec == Compression.ZSTD else BYTES_ON_THE_SPOT)
    return header.record_count > RECORDS_ON_THE_SPOT or header.batch_length > max_bytes
