"""The console: pages in a browser that show a fleet and ask about it.

It reads with informers and asks through a transport, as controllers do. Of the server it knows the
transport alone (``server.http``, WebSockets, who a user is), because it has a listener of its own;
whatever it reads or writes for somebody goes through the engine with the rights of that person.
"""
