"""The names of consent, once: kinds, marks and modes.

LocationGrants of an inventory workspace say who may place what at its Locations. The controllers
report in the workspace's one LocationConsent, and take confirmations from an annotation of it.
"""

from __future__ import annotations

from typing import Final, Literal

from skerry.api.kinds import GroupVersionResource

GRANTS: Final = GroupVersionResource("edge.kcp.io", "v1alpha1", "locationgrants")
CONSENTS: Final = GroupVersionResource("edge.kcp.io", "v1alpha1", "locationconsents")
# The only LocationConsent of a workspace.
CONSENT_NAME: Final = "default"

Mode = Literal["Observe", "Enforce"]
OBSERVE: Final = "Observe"
ENFORCE: Final = "Enforce"

# On a LocationConsent: the ids that a person confirms, separated by commas.
CONFIRM: Final = "edge.kcp.io/confirm"

# Beginnings of ids, by which whoever takes a confirmation knows his own: the edge scheduler those
# of destinations and of opening, the placement translator those of objects.
DESTINATION_ID: Final = "d-"
OBJECT_ID: Final = "o-"
OPENING_ID: Final = "open-"
