"""Pure rules of workspaces and API exports: names and paths, types, bindings, what is born.

A *logical cluster* has a name (``root``, or 16 characters nobody chose). A *workspace* is an
object in one logical cluster that stands for another. A *path* such as ``root:org:team`` walks
workspaces by name, from a logical cluster's name downwards.
"""
