"""Group versions that other servers serve: requests passed on to them, and their documents joined.

On plain servers only. In a workspace anybody may write an APIService, and this server's own network
is not theirs to reach; there they are data.
"""
