"""Brokers, clients and their network in one thread, from one seed: virtual time, disks in memory, and a fault at any moment.

- `world`: one clock and one network, and the nodes in it; a story drives them.
- `node`: a machine and its process, which can be killed, paused, lose its power or have its clock set; `broker_node` runs a broker.
- `virtual_loop`: an asyncio loop whose clock moves only when nothing else is left to do; `node_loop` is the part of it that a node sees.
- `network`: addresses, delays and cuts; `transport` is one end of a connection.
- `executor`: a node's threads, whose work takes virtual time.
- `disk`: files whose unsynced bytes a power cut loses, torn writes, errors, a full or slow disk.
- `timeline`: what happened when and to whom, to be read, and as a hash that equal runs share.
- `workload`: producers, readers and group members that write down all they were told; `transactions` and `creator` hold more of them.
- `checkers`: one property a module, judged on what was written down.
- `result`: plays a run's story, and has the checkers judge it.
- `one_broker`: draws a run of one broker from a seed, and plays it.
- `cluster`: draws a run of a cluster from a seed, and plays it: `cluster_node`, `cluster_faults`, `cluster_client` are its parts.
- `aimed_faults`: faults that wait for a weak moment of a cluster.
- `mover`, `recreator`, `voter_mover`: clients that change the cluster: where replicas are, which topics there are, who votes.
- `final_reading`: what clients see when all is over; `end_watcher` and `offset_watcher` see it all the time.
- `deliberate_bugs`: faults that are switched on here only, to see that each checker can fail.

`make simulate SEED=7` replays one run, `make simulate` plays new ones; with NODES=3 it plays a cluster.
"""
