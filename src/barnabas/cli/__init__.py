"""The command line: an ordinary Kafka client for people and scripts. Shell plane.

One module per noun; each imports click when it is loaded and everything else when it runs, so that `barnabas --help` is
quick. Administration speaks our own protocol code through :mod:`barnabas.client`; records travel through
confluent-kafka. Everything works against Apache Kafka too.
"""
