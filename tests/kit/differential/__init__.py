"""The same generated requests to two API servers, and what differs between their answers.

``python -m tests.kit.differential --kubeconfig F`` asks a server of ours, started for the purpose,
and the one that the kubeconfig leads to, and lists every difference in status, reason, causes,
media type, warnings and shape. With ``--hub`` the other is a kcp, and ours a hub; both are asked in
the workspace that their kubeconfigs lead to. ``--record FILE`` keeps the other server's answers;
the test suite compares ours with those of a kube-apiserver 1.32 on every run.
"""
