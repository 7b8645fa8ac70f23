"""The transaction coordinator: transactional ids and their transactions, markers, producer ids.

Reading order: `transaction_coordinator`, `transaction_shard` (one shard of it), `transaction_metadata`, `markers`.
"""
