"""The workspace layer: many logical clusters behind one engine.

``state`` knows which clusters, workspaces, exports and bindings there are. On it stand the
router (paths to clusters), the catalogue (types per cluster), the authorizer (who may enter),
and the admission rules that write everything a create implies in the same transaction.
"""
