"""Clock, ids, randomness, logging, metrics, trust. Knows nothing of Kubernetes."""
