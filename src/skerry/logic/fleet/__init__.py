"""The product's own rules: which edges a placement means, what each of them runs, what came back.

Each subject is a package: ``placement`` (where), ``translation`` and ``customization`` (what),
``syncing`` (at the edge), ``summary`` (what is reported back), ``explanation`` (why). The API
server does not know this room; controllers, the syncer and ``skerry explain`` do.
"""
