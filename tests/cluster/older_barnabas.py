"""Nodes of an older barnabas beside the present one, run by the same Python.

Nothing is installed: the processes of `OlderBarnabasNode` find their package (`tests.older_release`) through PYTHONPATH.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from tests.cluster.node_process import BarnabasNode


class OlderBarnabasNode(BarnabasNode):
    """A node of the older barnabas.

    Attributes:
        source: the folder of its package. A test sets it before it starts a node.
    """

    kind = "older-barnabas"
    source: ClassVar[Path]

    def format_command(self, cluster_id: str) -> list[str]:
        return [*self._with_source(), *super().format_command(cluster_id)]

    def start_command(self) -> list[str]:
        return [*self._with_source(), *super().start_command()]

    def _with_source(self) -> list[str]:
        # `env` becomes the command that follows, so that signals reach the node.
        return ["env", f"PYTHONPATH={self.source}"]
