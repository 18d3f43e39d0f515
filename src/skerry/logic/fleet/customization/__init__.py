"""How an object differs from place to place.

Two annotations of an object ask for it. ``edge.kcp.io/expand-parameters: "true"`` replaces
``%(name)`` in its string values by what the Location says of *name*. ``edge.kcp.io/customizer``
names a Customizer, whose replacements (a path, and a value as JSON) are made in order.

``parameters`` expands, ``paths`` reads the path grammar, ``replacement`` finds and replaces,
``customize`` puts them together and says when an object had better not be sent.
"""
