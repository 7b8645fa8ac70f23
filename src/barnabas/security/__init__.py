"""Who is at the other end, and what he may do: principals, TLS, logins, key stores, access control lists.

Nothing here reads a socket, a clock or a log: bytes and values come in, bytes and values go out. The client, the listeners, the
handlers and the controller use this room, and it uses none of them.
"""
