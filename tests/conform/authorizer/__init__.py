"""Kafka's own authorizer as a judge: random access control lists and questions, and a Java program that answers them."""
