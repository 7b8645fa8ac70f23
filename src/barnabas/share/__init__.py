"""Share groups (KIP-932): the delivery state of their partitions, and the delivery of records to their members."""
