"""``KubeSchedulerConfiguration`` files as kube-scheduler reads them.

``load`` decodes strictly, fills in defaults and validates, collecting every error in Kubernetes'
words; ``dump`` writes the effective configuration. Pure: reading files is the caller's business.
"""
