"""Finds records of a topic. A search is complete, or says what it has not read.

| module | holds |
|---|---|
| `query` | a search as a value: parameters of an address, and the `barnabas consume` line that reads the same |
| `span` | which offsets of which partitions are wanted, fixed at the start |
| `fetched` | one fetch: its batches, and what is known of their transactions |
| `partition_scan` | the records of one partition, forwards or backwards |
| `search` | the records of all partitions in order, those that pass, and when to stop |
| `filters` | whether a record passes: key, header, time, and an expression over what it says (`decoding.expression`) |
| `cursor` | where a search goes on, as text |
| `verdict` | what was read, in sentences and for programs |

**Order.** Records are merged by time, partition and offset. A partition's records stay in the order of their offsets, since offsets are
what a search can go on at; so a record counts as of the latest time before it in its partition, if its own is earlier. Newest first is the
same backwards. The order depends on the log alone, so a search that is repeated over the same log finds the same in the same order.

**Turns.** A search reads until it has enough, or its time or bytes are used up, and returns a cursor. It blocks, so it belongs into a
thread; nothing that it calls holds the interpreter for long.

**Truth.** Each offset of the range is accounted for: a record, a marker of a transaction, an offset that compaction has emptied, one that
was removed before it was read, one in a damaged batch, or one that is not read yet.
"""
