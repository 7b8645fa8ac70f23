"""Typed columns as columns of bytes: Avro, JSON and Protobuf, alone or in Confluent's frame."""
