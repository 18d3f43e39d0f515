"""Keys, kinds, schemas and Status errors: data only, no I/O."""
