"""Sockets, timers, configuration, and the assembly of a node from the other rooms.

`node.Node` is one node; `commands` runs it as a process, `embedded.Broker` inside a test. Only this room passes clock,
randomness, disk and loop to the others.
"""
