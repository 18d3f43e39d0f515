"""What the pod scheduler knows of the cluster, laid out for fast decisions.

``pod`` and ``node`` hold objects read once into plain fields; ``table`` mirrors all nodes in
arrays, one row each; ``counts`` keeps running totals for spreading and affinity; ``objects`` holds
everything else plugins look up; ``cluster`` ties them together and knows which pods are assumed.
Nothing here does I/O.
"""
