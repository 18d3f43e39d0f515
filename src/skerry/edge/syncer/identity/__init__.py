"""How an edge proves to its hub who it is: keys made at the edge, certificates, tokens before them.

``credential`` decides when a certificate is due and ``enrolment`` how it is asked for;
``credential_gate`` puts whatever is accepted now before every request. Keys are made by a program
that ends (``signing_request``) and kept by ``identity_store``. The rest of the syncer knows only
the transport that comes out of it.
"""
