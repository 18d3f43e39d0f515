"""Paths below objects, and kinds that are asked rather than stored.

A ``Subresource`` handler takes a call whose info names it. ``status`` is not among them: it is a
write like any other, of one part of the object.
"""
