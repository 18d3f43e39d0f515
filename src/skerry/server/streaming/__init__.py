"""Conversations over a connection that was taken over: exec, attach and port-forward.

The protocols of Kubernetes' clients, to whoever has processes and sockets to connect them to; the
server has none itself.
"""
