"""Built-in types whole: the catalogue's facts, the schemas, and each kind's own rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from skerry.api.kinds import ResourceInfo
from skerry.logic.machinery.builtin import (
    admission,
    autoscaling,
    batch,
    cluster,
    configuration,
    cron_jobs,
    endpoints,
    events,
    flow_control,
    limits,
    networking,
    pods,
    rbac,
    services,
    storage,
    storage_drivers,
    webhook_configurations,
    workloads,
)
from skerry.logic.machinery.builtin.catalogue import catalogue
from skerry.logic.machinery.builtin.definitions import schema_of
from skerry.logic.machinery.builtin.nulls import without_nulls
from skerry.logic.machinery.builtin.rules import Rules, RuleTable
from skerry.logic.machinery.printing import columns_for
from skerry.logic.machinery.resource import Resource

_TABLES: Sequence[RuleTable] = (
    admission.RULES,
    autoscaling.RULES,
    batch.RULES,
    cron_jobs.RULES,
    cluster.RULES,
    configuration.RULES,
    endpoints.RULES,
    events.RULES,
    flow_control.RULES,
    limits.RULES,
    networking.RULES,
    pods.RULES,
    rbac.RULES,
    services.RULES,
    storage.RULES,
    webhook_configurations.RULES,
    storage_drivers.RULES,
    workloads.RULES,
)
_PLAIN = Rules()


@cache
def builtin_resources() -> Sequence[Resource]:
    """Return every built-in type, one per served version, in the order of discovery."""
    rules = {name: found for table in _TABLES for name, found in table.items()}
    return tuple(
        _resource(info, rules.get(info.gvr) or rules.get(info.group_resource) or _PLAIN)
        for info in catalogue()
    )


def _resource(info: ResourceInfo, rules: Rules) -> Resource:
    schema = schema_of(info.gvk)
    return Resource(
        info=info,
        schema=schema,
        storage_version=rules.storage_version or info.version,
        default=without_nulls(rules.default, schema),
        prepare_create=rules.prepare_create,
        prepare_update=rules.prepare_update,
        validate_create=rules.validate_create,
        validate_update=rules.validate_update,
        validate_status=rules.validate_status,
        warnings=rules.warnings,
        check_name=rules.check_name,
        counts_generation=rules.counts_generation,
        status_at_creation=rules.status_at_creation,
        columns=columns_for(info.group, info.kind),
        selectable_fields=rules.selectable_fields,
        scale=rules.scale,
        convert=rules.convert,
        grace_seconds=rules.grace_seconds,
        storage_group=rules.storage_group,
        compiles=rules.compiles,
    )
