"""Tunnels that edges dial, and the sessions that people have through them.

Nothing leads from a hub to an edge but what the edge itself dialled. ``lines`` keeps those
connections, ``reach`` says which edge and whose namespace a request is about, ``sessions`` lets
somebody with the right to it speak with the edge cluster, and has it in the audit log.
"""
