"""Brokers, clients and their network in one thread, from one seed: virtual time, disks in memory, and a fault at any moment.

    import barnabas.simulation as simulation

    async def scenario(cluster):
        ...                          # an asyncio client of cluster.bootstrap_servers
        cluster.kill(1)
        await asyncio.sleep(60)      # virtual seconds

    simulation.run(scenario, seed=7, nodes=3)

For users: `run` and what it returns (`Run`) or raises (`Hung`), the `Cluster` of a scenario, its `Process`es and their `NodeDied`.

Below:

- `world`: one clock and one network, and the nodes in it; a story drives them.
- `node`: a machine and its process, which can be killed, paused, lose its power or have its clock set; `broker_node` runs a broker,
  `cluster_node` a broker, a controller or both.
- `world_loop`: an asyncio loop whose clock moves only when nothing else is left to do; `node_loop` is the part of it that a node sees.
- `network`: addresses, delays and cuts; `transport` is one end of a connection.
- `executor`: a node's threads, whose work takes virtual time.
- `disk`: files whose unsynced bytes a power cut loses, torn writes, errors, a full or slow disk.
- `clocks`: the `time` module in virtual time, for clients that read it.
- `timeline`: what happened when and to whom, to be read, and as a hash that equal runs share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.imported_when_used import imported_when_used

if TYPE_CHECKING:
    from barnabas.simulation.cluster import Cluster as Cluster
    from barnabas.simulation.node import NodeDied as NodeDied
    from barnabas.simulation.process import Process as Process
    from barnabas.simulation.runs import Hung as Hung
    from barnabas.simulation.runs import Run as Run
    from barnabas.simulation.runs import run as run

__all__ = ["Cluster", "Hung", "NodeDied", "Process", "Run", "run"]

__getattr__ = imported_when_used(
    __name__,
    Cluster="barnabas.simulation.cluster",
    Hung="barnabas.simulation.runs",
    NodeDied="barnabas.simulation.node",
    Process="barnabas.simulation.process",
    Run="barnabas.simulation.runs",
    run="barnabas.simulation.runs",
)
