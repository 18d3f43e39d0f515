"""Publishes the server's CA to every namespace, so that pods can verify the server they call.

Reads Namespaces and the ConfigMaps called ``kube-root-ca.crt``. Writes those ConfigMaps.

Invariant: in an active namespace ``kube-root-ca.crt`` exists and says exactly what we were given
last.
"""
