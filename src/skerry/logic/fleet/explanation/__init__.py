"""Why an object is or is not at a destination, along the whole way it travels.

``links`` names the steps of the way and what was found at each; ``what`` says why an object is or
is not meant by a placement; ``way`` goes from the Location to the health of the copy; ``changes``
says what an edit not yet made would add and remove; ``text`` says all of it to people. All from
the same functions by which the controllers act, so the answer is about what really happens.
"""
