"""Admin: what it shows, and that it closes its cluster."""

from barnabas.client.admin import Admin


def test_repr_and_close(admin: Admin) -> None:
    with admin:
        admin.list_topics()
    assert repr(admin) == "<Admin <Cluster 127.0.0.1:1 2 brokers>>"
