"""A node's part in the metadata quorum, and the ways to the active controller.

metadata_quorum ──► raft.raft_driver ──► metadata_log     `__cluster_metadata-0` on disk
                                    └──► quorum_peers     the other nodes, over the network
controller_server                                         the controller as others reach it
controller_channel                                        the way to the active controller, wherever it is
"""
