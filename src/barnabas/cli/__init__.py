"""The command line: an ordinary Kafka client for people and scripts.

One module per noun. Administration uses `barnabas.client`; records travel through confluent-kafka. Everything works against Apache
Kafka too.
"""
