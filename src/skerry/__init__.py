"""skerry places workloads on very many edge clusters, speaking plain Kubernetes."""

__version__ = "0.1.0"
