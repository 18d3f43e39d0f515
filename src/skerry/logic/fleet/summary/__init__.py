"""What the states an object has at very many places come to, in one small summary.

``health`` judges one copy; ``report`` reads everything a summary needs from it; ``tally`` folds the
reports of a placed object while single destinations come, change and go; ``tables`` says which
reports belong to which tally; ``content`` writes the summary object.

Promises: all of it is pure; a tally kept up one change at a time equals the one computed from
scratch, exactly, decimals included; a report costs the same at ten destinations and at ten
thousand. Edges are untrusted: whatever they report, a summary stays below the size fixed here.
"""
