"""A scheduler plugin in ten lines: prefer nodes whose label equals the pod's.

Offered to skerry by an entry point in its package's ``pyproject.toml``::

    [project.entry-points."skerry.scheduler.plugins"]
    PreferLabel = "prefer_label:PreferLabel"

and switched on in the scheduler's configuration::

    profiles:
    - plugins: {multiPoint: {enabled: [{name: PreferLabel, weight: 5}]}}
      pluginConfig: [{name: PreferLabel, args: {key: example.com/team}}]

It answers for one node at a time, which always works. ``score_all`` would answer for all at once;
``scope`` and ``signature`` would let answers be remembered. See ``framework/plugin.py``.
"""


class PreferLabel:
    name = "PreferLabel"

    def __init__(self, args, handle):
        self._key = args["key"]

    def score(self, state, pod, node):
        wanted = pod.spec.labels.get(self._key)
        return 100 if wanted is not None and node.labels.get(self._key) == wanted else 0
