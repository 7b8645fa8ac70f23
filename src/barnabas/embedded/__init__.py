"""barnabas inside a Python program: a broker in a thread, a cluster of processes, and faults that a test may order.

`import barnabas` offers `broker.Broker` and `cluster.Cluster`. Both run a `node.node.Node` as it is.
The node of a cluster is a process that runs `cluster_node`; `cluster_process` starts and ends it, `cluster_control` is the
channel between the two. `request_faults` acts on a node's answers, `link_faults` on its connections.
"""
