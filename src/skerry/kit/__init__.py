"""Clock, ids, randomness, logging, metrics. Knows nothing of Kubernetes."""
