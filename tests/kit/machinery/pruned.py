"""A custom resource with fields its schema does not know."""

from __future__ import annotations

from skerry.api.schema import Schema
from tests.kit.machinery.schemas import CRON_TAB

CRON = Schema(CRON_TAB)
