"""What the states an object has at very many places come to, in one small summary.

* ``health``: one copy, judged as Argo and kstatus would; ``freshness``: what that is worth while
  its edge is not heard of; ``report``: everything a summary needs of it.
* ``tally``: the reports of a placed object, folded while destinations come, change and go, with
  ``extremes``; ``standing``: the same for a placement as a whole. ``tables``: which reports belong
  to which; ``selection``: which objects a summary is due for.
* ``content``: the summary object; ``conditions``: what an EdgePlacement says of all destinations.
* ``aggregate``, ``aggregate_numbers``: a source's status, made of all its destinations' and
  ``gathered`` from the tallies of the placements that ask; ``reported_replicas``: the same of a
  Deployment as Helm 3 looks for it; ``returned``: which status may be one.

Promises: all of it is pure; a tally kept up one change at a time equals the one computed from
scratch, exactly, decimals included; a report costs the same at ten destinations and at ten
thousand. Edges are untrusted: whatever they report, a summary stays below the size fixed here.
"""
