"""A resource request as the engine reads it: where it goes, what it selects, what it carries.

Knows HTTP messages and served types, and nothing of how a request is answered.
"""
