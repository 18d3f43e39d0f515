"""Keeps ``status.used`` of every ResourceQuota true.

Reads ResourceQuotas, and objects of exactly the types some quota limits (their metadata only,
except where the content is counted: pods, services, claims). Writes the quotas' status.

Invariant: once quiet, ``status.hard`` equals ``spec.hard`` and ``status.used`` what
``logic.machinery.quota`` computes from everything in the namespace. Admission counts up from there.
"""
