"""Words for people: names made safe to print, near misses, durations, sizes, the sentences of errors. Nothing here knows the broker."""
