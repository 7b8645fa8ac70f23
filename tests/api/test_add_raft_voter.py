"""AddRaftVoter on a broker's listener: the active controller answers; `test_voter_changes` has the rest."""

from __future__ import annotations

from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import AddRaftVoterRequest
from tests.api.served_node import Serving


def test_the_broker_forwards_it(tmp_path: Path) -> None:
    serving = Serving(tmp_path)
    answer = serving.ask(AddRaftVoterRequest(cluster_id="another", voter_id=2, voter_directory_id=b"d" * 16))
    assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    answer = serving.ask(AddRaftVoterRequest(cluster_id=None, voter_id=2, voter_directory_id=b"d" * 16))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.error_message == "The voters cannot be changed: this node has no listener for other controllers."
    serving.close()
