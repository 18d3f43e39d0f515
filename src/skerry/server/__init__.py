"""The API engine: HTTP, REST semantics, watch, discovery, admission, authn and authz."""
