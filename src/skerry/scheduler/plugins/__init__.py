"""The plugins kube-scheduler ships, one module each; none knows another."""
