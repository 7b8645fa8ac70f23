"""Fetch (API key 1, versions 4-18) on a controller's listener: another node reads the metadata log.

- Only `__cluster_metadata` partition 0 is there to read; anything else is INVALID_REQUEST for the whole request.
- There are no fetch sessions: each request names the partition.
- A fetch at the end of the log waits, up to max_wait_ms, for records or for a higher high watermark. It holds its own connection only.
- `api.fetch` lists the versions.
"""

from barnabas.api.peer_requests import answer_peer

handle = answer_peer
