"""Limits on what clients may use, and the arithmetic of throttling. Control plane, pure.

`client_quotas` holds the four client quotas of a broker, `quota_manager` what each of them measures, `rate` and `token_bucket`
how; `connection_quotas` says who may connect. Nothing here sends, waits or knows the time: a caller says what happened and when,
and is told how many milliseconds to hold the client back.
"""
