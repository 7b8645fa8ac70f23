"""barnabas inside a Python program: a broker in a thread, a cluster of processes, and faults that a test may order.

`broker.Broker` and `cluster.Cluster` are what `import barnabas` offers. Both run the node of `barnabas.server` as it is.
The node of a cluster is a process that runs `cluster_node`; `cluster_process` starts and ends it, `cluster_control` is the
channel between the two. `request_faults` acts on a node's answers, `link_faults` on its connections.
"""
