"""Clusters of real processes, of Apache Kafka and of barnabas, with the same server.properties, and what faults do to them.

- `node_process`: one node and its process, which can be killed, stopped, paused, started again, and lose its disk.
- `cluster`: three nodes that are broker and controller, or a controller and three brokers; scenarios are written against it alone.
- `views`: what the nodes say of partitions and of their quorum; `waiting` waits for it.
- `load`: a producer in a thread, and what was acknowledged to it; `records` reads everything back and compares.
- `replicas`: the logs of all replicas of a partition, compared by kafka-dump-log.
- `scenarios`: one function a scenario; `test_scenarios` plays each on both kinds of cluster.
- `tool_steps`: calls of Kafka's tools, whose output `test_tools` compares.
- `failover_time`: a script that measures how long a cluster takes from a kill to the next write.

A scenario waits for a condition, and no sleep proves anything. It leaves the cluster with all its nodes up; otherwise the next scenario
gets a new cluster.
"""
