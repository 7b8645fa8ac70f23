"""The whole broker in one thread, from one seed: virtual time, a network and a disk in memory, crashes at any moment.

- `virtual_loop`: an asyncio loop whose clock moves only when nothing else is left to do.
- `network`: connections in memory with delays, split reads and resets.
- `disk`: files whose unsynced bytes a power cut loses, torn writes, errors, a full disk.
- `workload`: producers, readers and group members that write down all they were told.
- `checkers`: one property a module, judged on what was written down.
- `world`: draws a run from a seed, and plays it.
- `deliberate_bugs`: faults that are switched on here only, to see that each checker can fail.

`make simulate SEED=7` replays one run, `make simulate` plays new ones.
"""
