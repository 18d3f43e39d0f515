"""The product's own rules: which edges a placement means, what each of them runs, what came back.

Each subject is a package: ``placement`` (where), ``translation`` and ``customization`` (what),
``syncing`` (at the edge), ``summary`` (what is reported back), ``explanation`` (why). What may
change and when is ``revision`` and ``rollout``, how much of it ``guards``; what was decided is
``history``; questions are ``query``, and ``overview`` and ``console`` are what screens show. All of
them stand on ``tables``, whose ``chain`` is the map. ``type_rules`` hands the API server what it
refuses and warns of; otherwise the server does not know this room: controllers, the syncer and
``skerry explain`` do.
"""
