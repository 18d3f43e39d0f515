"""Runs Jobs: enough pods at a time until enough have succeeded, or too many have failed.

Reads Jobs and Pods. Writes pods and the Job's status, and deletes finished Jobs when their time
to live is over.

Invariants: a pod's end is counted exactly once. Each pod carries a finalizer until its end stands
in the Job's status, so it cannot vanish uncounted; the uids being counted stand in
``uncountedTerminatedPods`` meanwhile, so that none is counted twice.
"""
