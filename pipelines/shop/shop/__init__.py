"""A shop's pipeline on Spark: order lines in, tables and topics out."""
