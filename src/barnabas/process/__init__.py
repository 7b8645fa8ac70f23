"""The process of a node: the command line, the signals that end it, and the supervisor of a cluster on this machine.

commands ──► node.node                    `barnabas start`
commands ──► supervisor ──► local_cluster `barnabas start --nodes N`: a process a node
storage_commands ──► directory.storage    `barnabas storage`
"""
