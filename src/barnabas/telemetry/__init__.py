"""Client telemetry (KIP-714): which metrics clients shall push, and what they pushed last. Control plane, pure.

`client_metrics_manager` answers the two requests, `otlp` reads what a push carries, `pushed_metrics` keeps the newest values.
In Apache Kafka a plugin receives the pushes, and without one clients are not asked; here the broker itself is the receiver.
"""
