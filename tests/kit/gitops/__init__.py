"""Requests of GitOps tools, and the shapes of a server's answers to them.

``asking`` speaks to a server as a kubeconfig says; ``shapes`` cuts an answer down to what a tool
depends on; ``argo`` and ``flux`` are the requests those tools make, in their order; ``record``
writes down the shapes that a kube-apiserver answers with, for tests to compare a workspace with.
"""
