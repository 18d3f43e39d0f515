"""What the states an object has at very many places come to, in one small summary.

``health`` judges one copy, ``report`` reads everything a summary needs from it, ``extremes`` and
``accumulator`` keep the totals while single destinations come, change and go, ``content`` writes
the summary object, ``ledger`` knows which copies belong to which summary. Pure throughout; the
incremental structures always equal what would be computed from scratch.

Edges are untrusted: whatever they report, a summary stays below the size fixed here.
"""
