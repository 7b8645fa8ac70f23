"""The server room (shell): sockets, timers, configuration, and the assembly of a node out of the other rooms.

`broker.BrokerServer` is one node; `commands` runs it as a process, `embedded.Broker` inside a test. Clock, randomness,
disk and loop enter the other rooms here and nowhere else.
"""
