"""Runs of brokers and clusters in `barnabas.simulation`, drawn from a seed, with a fault at any moment, and judged.

- `workload`: producers, readers and group members that write down all they were told; `transactions` and `creator` hold more of them.
- `checkers`: one property a module, judged on what was written down.
- `result`: plays a run's story, and has the checkers judge it.
- `one_broker`: draws a run of one broker from a seed, and plays it.
- `cluster`: draws a run of a cluster from a seed, and plays it: `judged_node`, `cluster_faults`, `cluster_client` are its parts.
- `aimed_faults`: faults that wait for a weak moment of a cluster.
- `mover`, `recreator`, `voter_mover`: clients that change the cluster: where replicas are, which topics there are, who votes.
- `final_reading`: what clients see when all is over; `end_watcher` and `offset_watcher` see it all the time.
- `deliberate_bugs`: faults that are switched on here only, to see that each checker can fail.

`make simulate SEED=7` replays one run, `make simulate` plays new ones; with NODES=3 it plays a cluster.
"""
