"""How much a change may do before a person is asked.

``spec`` reads PlacementGuards, ``effect`` says what a change does, ``budget`` what of it may happen
now, ``freeze`` when nothing moves, ``token`` by what a person confirms exactly what was shown. One
set of functions for the edge scheduler, the placement translator and a hub's admission: what one of
them lets pass, the next does not hold.
"""
