"""Record batches: the bytes Kafka stores, sends and checks.

Data plane, pure. A batch is handled as one piece of memory; a record becomes an object only where somebody asks for it
(:func:`barnabas.records.record.iter_records`). The broker's ordinary path reads a header, checks one CRC and patches
two fields.
"""
