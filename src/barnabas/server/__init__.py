"""Sockets, timers, configuration, and the assembly of a node from the other rooms.

`node.Node` is one node; `commands` runs it as a process, `barnabas.embedded` inside a program. Only these two rooms pass
clock, randomness, disk and loop to the others.
"""
