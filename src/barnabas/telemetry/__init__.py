"""Client telemetry (KIP-714): the metrics that clients are to push, and the values they pushed last.

`client_metrics_manager` answers the two requests, `otlp` decodes a push, `pushed_metrics` keeps the newest values. In Apache Kafka a
plugin receives the pushes, and without one clients do not push; here the broker itself is the receiver.
"""
