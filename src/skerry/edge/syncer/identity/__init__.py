"""How an edge proves to its hub who it is: keys made at the edge, certificates, tokens before them.

``credential`` decides when a certificate is due, ``enrolment`` how the first is asked for and
``certificate_request`` how one is waited for; ``token`` is for hubs that sign none;
``credential_gate`` puts whatever is accepted now before every request. Keys are made by a program
that ends (``keys``, ``signing_request``) and kept by ``identity_store``. The rest of the syncer
knows only the transport that comes out of it.
"""
