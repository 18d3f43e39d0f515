"""From what a client sent to an object that may be stored: the part of a write that only computes.

Nothing here reads the store or the state of the server, so a worker process can do it as well.
"""
