"""Pure rules: selectors, patch and apply, validation, RBAC, plans. No I/O, clock or randomness."""
