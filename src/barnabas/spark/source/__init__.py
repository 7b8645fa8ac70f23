"""Reading a topic with Spark: the batch reader, the stream reader, their offsets and their tasks.

batch, stream ──► offsets ──► ranges ──► fetcher ──► columnar     Arrow columns, without an object per record
"""
