"""Tells which pods stand behind a Service: EndpointSlices, and Endpoints for older readers.

Reads Services and Pods. Writes EndpointSlices it labelled as its own, and the Endpoints of the
same name as the Service, which go when it goes.

Invariants: only pods with an address are reported; ready, serving and terminating are the pod's own
words. Slices of others (no or another ``managed-by`` label) are left alone.
"""
