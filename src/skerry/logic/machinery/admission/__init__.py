"""Admission that clients configure: which requests a rule means, and what its expressions say.

``matching`` tells whether rules, selectors and match policies mean a request; webhooks and
policies write them alike. ``environment`` is what CEL expressions of admission can see.
``policies`` compiles ValidatingAdmissionPolicies, ``evaluation`` judges a request by them,
``type_checking`` warns of fields that the matched kinds do not have. All of it is pure: objects,
parameters and decisions of the authorizer are handed in.
"""
