"""FetchSnapshot (API key 59, versions 0-1): another node reads a snapshot of the metadata in slices.

- Rejected with UNSUPPORTED_VERSION: no node needs one before the log is cut.
"""

from __future__ import annotations

from barnabas.api.context import ControllerContext
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse


def handle(context: ControllerContext, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "This controller does not send snapshots yet.")
