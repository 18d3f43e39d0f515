"""Protocols as bytes: what goes over the wire, without the wire.

Nothing here does I/O or knows Kubernetes. Each module takes bytes that arrived and gives events,
or takes what is to be said and gives bytes to send; sockets, tasks and files are its callers'.
"""
