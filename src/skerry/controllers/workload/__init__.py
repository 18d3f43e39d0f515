"""The controllers that turn workload kinds into pods, as kube-controller-manager does."""
