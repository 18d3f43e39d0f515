"""The whole system, or parts of it, in virtual time under injected faults, replayed by seed."""
