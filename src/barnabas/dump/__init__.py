"""`barnabas log dump`: the files of logs, read without a broker.

command ──► log_files ──► log, records, metadata   the formats of the files
"""
