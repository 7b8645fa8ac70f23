"""Sockets: listeners, connections, and the bytes between a socket and the dispatcher; HTTP for metrics and health; lines of the log.

transport_layer ──► listener ──► connection ──► api.serving.dispatch
                                         └──► response_queue ──► sendfile
"""
