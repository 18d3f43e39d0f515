"""Rules of the workload kinds: who owns whom, how a rollout steps, when a schedule is due.

Everything here is pure. The workload controllers and the node agent build on it; both also hold
against a real Kubernetes, because the rules are those of kube-controller-manager.
"""
