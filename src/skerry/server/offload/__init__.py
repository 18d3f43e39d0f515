"""Work that is too long for the event loop, done in other processes.

One loop serves everybody, so nothing on it may take long. A thread would not help: it takes the
interpreter's lock from the loop, and C code holds that lock until it returns. So what a large
body asks for is computed in a worker process, which can be limited in memory and time, and can
be ended: a worker computes, and writes nothing.

- ``messages``: what goes between the processes.
- ``families``: types built again in a worker from what defines them.
- ``jobs``: what a worker can be asked for.
- ``worker``: the worker's side.
- ``pool``: the server's side: processes, and whose turn it is.
- ``offload``: what the rest of the server asks.
"""
