"""RBAC as Kubernetes evaluates it: rules, who they reach, what may be granted. Pure."""
