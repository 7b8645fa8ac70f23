"""Columns of bytes as typed columns: Avro, JSON and Protobuf, alone or in Confluent's frame."""
