"""Gives every namespace its ``default`` ServiceAccount, without which no pod can be made.

Reads Namespaces and the ServiceAccounts called ``default``. Writes that ServiceAccount where it
is missing; what people put into an existing one is theirs.

Invariant: an active namespace has a ServiceAccount ``default``.
"""
