"""REST semantics: what each verb does to objects, as Kubernetes documents and does it."""
