"""Record batches: the bytes Kafka stores, sends and checks.

A batch is handled as one piece of memory; a record becomes an object only where its fields are needed
(`record.iter_records`). To append a batch the broker reads its header, checks one CRC and patches two fields.
"""
