"""Limits on clients and the arithmetic of throttling.

`client_quotas` holds the four client quotas of a broker, `quota_manager` one quota's limits and sensors, `rate` and `token_bucket`
the two meters; `connection_quotas` limits connections. Nothing here sends, waits or reads a clock: callers pass what happened and
when, and get back how many milliseconds to throttle the client.
"""
