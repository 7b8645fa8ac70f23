"""What a monitoring system reads from a broker: one text, made when it is asked for. Control plane.

    Source (services of a running node) ──► families of metrics ──► text of the Prometheus format ──► `server/metrics_endpoint`

Begin reading at `scrape`. Nothing here runs, and none of it is imported, until somebody asks for metrics.
"""
