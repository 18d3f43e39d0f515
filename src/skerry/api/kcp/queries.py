"""StatusQuery: one question about what edges report, and its answer, kept true.

What the schema can say of a question is said here: bounds, names, enumerations. Whether its
expressions mean anything, and what belongs together, ``logic.fleet.query.plan`` says; a hub of ours
refuses such a query, and on any other the condition ``Valid`` says what is wrong with it.
"""

from __future__ import annotations

from typing import Final

from skerry.api.kcp.building import (
    AGE,
    Raw,
    column,
    condition_path,
    conditions,
    definition,
    listing,
    moment,
    struct,
    text,
    truth,
    whole,
)

ROWS: Final = ("Copies", "Upsynced", "Destinations")
FUNCTIONS: Final = ("Count", "Sum", "Min", "Max", "Avg", "Percentile", "Top")
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
MAX_TOP: Final = 100
MAX_GROUP_COLUMNS: Final = 4
MAX_COLUMNS: Final = 16
# The longest rules that the Kubernetes project itself publishes take 1.5 KB.
_MAX_EXPRESSION = 4096
_MAX_NAMES = 100
_MAX_TTL_SECONDS = 86400 * 30

# Columns are variables of ``having``, so they have names that an expression can use.
_COLUMN = r"^[A-Za-z_][A-Za-z0-9_]*$"
_RESOURCE = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_API_GROUP = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"
_DURATION = r"^([0-9]+(h|m|s))+$"


def definitions(group: str, categories: tuple[str, ...]) -> list[Raw]:
    """Return the kind."""
    return [_status_query(group, categories)]


def _status_query(group: str, categories: tuple[str, ...]) -> Raw:
    return definition(
        group,
        "StatusQuery",
        "statusqueries",
        {"spec": _spec(), "status": _status()},
        "StatusQuery is a question about the states that edges report of the objects placed from "
        "its workspace; in the provider workspace, of all. Its status has the current answer.",
        columns=[
            column("Matched", ".status.matched", "integer"),
            column("Groups", ".status.groups", "integer"),
            column("Errors", ".status.errors.rows", "integer"),
            column("Stale", ".status.sources.stale", "integer", priority=1),
            column("Absent", ".status.sources.absent", "integer", priority=1),
            column("Complete", condition_path("Complete")),
            column("Reason", condition_path("Complete", "reason"), priority=1),
            AGE,
        ],
        short_names=("sq",),
        categories=categories,
        required=("spec",),
    )


def _expression(description: str) -> Raw:
    return text(description, minLength=1, maxLength=_MAX_EXPRESSION)


def _column_name(description: str) -> Raw:
    return text(description, maxLength=63, pattern=_COLUMN)


def _named(description: str) -> Raw:
    return listing(text(minLength=1, maxLength=253), description, maxItems=_MAX_NAMES)


def _spec() -> Raw:
    value = struct(
        {
            "name": _column_name("Name of the column."),
            "value": _expression("CEL expression of the column."),
        },
        required=("name", "value"),
    )
    order = struct(
        {
            "column": _column_name("Name of a column of the result."),
            "descending": truth("Whether the greatest comes first."),
        },
        required=("column",),
    )
    return struct(
        {
            "from": _from(),
            "filter": _expression(
                "CEL expression of type bool; a row counts where it is true. Absent means every "
                "row."
            ),
            "groupBy": listing(
                value,
                "Columns by which rows are grouped; absent means one group.",
                maxItems=MAX_GROUP_COLUMNS,
            ),
            "aggregates": listing(
                _aggregate(), "Aggregates of each group.", minItems=1, maxItems=MAX_COLUMNS
            ),
            "select": listing(
                value, "Columns of a result with one row for each row.", maxItems=MAX_COLUMNS
            ),
            "having": _expression(
                "CEL expression of type bool over the columns of a group; where it is not true the "
                "group is left out."
            ),
            "orderBy": listing(order, "Order of the result.", maxItems=MAX_COLUMNS),
            "limit": whole(
                "Number of rows to show.",
                format="int32",
                minimum=1,
                maximum=MAX_LIMIT,
                default=DEFAULT_LIMIT,
            ),
            "staleAfter": text(
                "A report older than this counts as stale, such as 10m.",
                maxLength=32,
                pattern=_DURATION,
            ),
            "ttlSeconds": whole(
                "Seconds after its creation at which the query is deleted; absent means never.",
                format="int32",
                minimum=1,
                maximum=_MAX_TTL_SECONDS,
            ),
        },
        "The query.",
        required=("from",),
    )


def _from() -> Raw:
    return struct(
        {
            "rows": text(
                "Copies: one row for each copy of a placed object. Upsynced: one for each object "
                "that came up from an edge. Destinations: one for each edge that placements go to.",
                enum=list(ROWS),
                default="Copies",
            ),
            "apiGroup": text(
                "API group of the objects; empty for the core group.",
                maxLength=253,
                pattern=_API_GROUP,
            ),
            "resources": listing(
                text(maxLength=253, pattern=_RESOURCE),
                "Resources, in lower-case plural. Required unless rows is Destinations.",
                maxItems=MAX_COLUMNS,
            ),
            "namespaces": _named("Namespaces the objects are in; absent means all."),
            "names": _named("Names of the objects; absent means all."),
            "placements": _named("EdgePlacements by which they are placed; absent means all."),
        },
        "Rows that the query reads.",
    )


def _aggregate() -> Raw:
    return struct(
        {
            "name": _column_name("Name of the column."),
            "function": text("Function to compute.", enum=list(FUNCTIONS)),
            "of": _expression("CEL expression of the value; not for Count."),
            "percentile": {
                "type": "number",
                "description": "Percentile to compute, between 0 and 100.",
                "minimum": 0,
                "exclusiveMinimum": True,
                "maximum": 100,
                "exclusiveMaximum": True,
            },
            "k": whole(
                "Number of values that Top shows.", format="int32", minimum=1, maximum=MAX_TOP
            ),
            "show": _expression("CEL expression of what Top shows beside each value."),
        },
        required=("function", "name"),
    )


def _any(description: str) -> Raw:
    return {
        "description": description,
        "nullable": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }


def _status() -> Raw:
    count = {"format": "int64"}
    shown = struct(
        {
            "name": text("Name of the column."),
            "type": text("Type of its values: int, double, string, bool, dyn or list."),
            "approximate": truth("Whether a value of the column is not exact."),
        },
        required=("name", "type"),
    )
    sample = struct(
        {
            "location": text("Location of the row."),
            "object": text("Object of the row."),
            "column": text("Column whose expression failed; filter or a name."),
            "message": text("Error of the expression."),
        }
    )
    sources = struct(
        {
            "destinations": whole("Rows asked for.", **count),
            "reporting": whole("Rows whose copy is there.", **count),
            "stale": whole("Of those, how many have a report older than staleAfter.", **count),
            "absent": whole("Rows without a copy of the workspace's own.", **count),
        }
    )
    errors = struct(
        {
            "rows": whole("Rows of which an expression failed.", **count),
            "excluded": whole("Of those, how many are in no group because of it.", **count),
            "groups": whole("Groups that are left out because having failed.", **count),
            "samples": listing(sample, "The first errors."),
        }
    )
    as_of = struct(
        {
            "resourceVersion": text("Revision of the hub that was read when this was written."),
            "newestReport": moment("Time at which the newest state was reported."),
            "oldestReport": moment("Time at which the oldest state was reported."),
        }
    )
    return struct(
        {
            "observedGeneration": whole("Generation that the status describes.", **count),
            "columns": listing(shown, "Columns of the rows."),
            "rows": listing(
                struct({"values": listing(_any("A value, or null."), "One value for each column.")})
            ),
            "matched": whole("Number of rows that match.", **count),
            "filtered": whole("Number of rows that the filter leaves out.", **count),
            "groups": whole("Number of groups before having and limit.", **count),
            "rowsOmitted": whole("Number of rows of the result that are not shown.", **count),
            "sources": sources,
            "errors": errors,
            "asOf": as_of,
            "conditions": conditions(severity=False),
        },
        "Most recent answer.",
    )
