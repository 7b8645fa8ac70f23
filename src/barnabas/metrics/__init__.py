"""The broker's metrics as one text, made at each scrape.

    Source (services of a running node) ──► families of metrics ──► text of the Prometheus format ──► `node/metrics_endpoint`

Begin reading at `scrape`. A broker without `barnabas.metrics.listen` imports none of it.
"""
