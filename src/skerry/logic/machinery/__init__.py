"""What any Kubernetes API server and any controller must know: kinds, schemas, selectors, rules.

Nothing here knows that there are edges. A newcomer who knows apimachinery, apiextensions and the
API server's registries finds each of them under its own name.
"""
