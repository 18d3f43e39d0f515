"""From the text of a configuration file to profiles ready to be assembled, and back to text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from skerry.api.objects import Object
from skerry.scheduler.config.defaults import with_defaults
from skerry.scheduler.config.errors import ConfigurationError, aggregated
from skerry.scheduler.config.schema import (
    ARGUMENTS,
    CONFIGURATION,
    GROUP_VERSION,
    KIND,
    Decoder,
    parse_duration,
)
from skerry.scheduler.config.validate import configuration_errors
from skerry.scheduler.framework.profile import PluginRef, PluginSet, ProfileSpec


@dataclass(frozen=True, slots=True)
class ExtenderSpec:
    """One extender as configured."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls: Mapping[str, Any] = field(default_factory=dict)
    timeout_seconds: float = 5.0
    node_cache_capable: bool = False
    # Name → whether NodeResourcesFit must leave the resource to the extender.
    managed_resources: Mapping[str, bool] = field(default_factory=dict)
    ignorable: bool = False


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """How replicas agree on who schedules; times in seconds."""

    enabled: bool
    lease_seconds: float
    renew_seconds: float
    retry_seconds: float
    name: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """An effective configuration; ``document`` is what ``--write-config-to`` writes."""

    document: Object
    profiles: tuple[ProfileSpec, ...]
    extenders: tuple[ExtenderSpec, ...]
    leader_election: LeaderElection
    parallelism: int
    percentage_of_nodes_to_score: int
    initial_backoff_seconds: float
    max_backoff_seconds: float
    delay_cache_until_active: bool
    profiling: bool
    kubeconfig: str
    qps: float
    burst: int


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a key written twice, where plain YAML would silently take the last."""


def _unique_mapping(loader: _UniqueKeyLoader, node: yaml.MappingNode) -> Object:
    seen: set[str] = set()
    for key, _ in node.value:
        name = loader.construct_object(key, deep=True)
        if name in seen:
            line = key.start_mark.line + 1
            raise ConfigurationError(
                "strict decoding error: yaml: unmarshal errors:\n"
                f'  line {line}: key "{name}" already set in map'
            )
        seen.add(name)
    loader.flatten_mapping(node)
    return {str(key): value for key, value in loader.construct_mapping(node, deep=True).items()}


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)


def load(text: str) -> Configuration:
    """Read a configuration file; raises ConfigurationError with everything that is wrong."""
    return complete(decode(text))


def default_configuration() -> Configuration:
    """Return what an empty file means."""
    return complete({})


def decode(text: str) -> Object:
    """Decode strictly, without defaults."""
    try:
        raw = yaml.load(text, _UniqueKeyLoader)  # noqa: S506 - derived from SafeLoader
    except yaml.YAMLError as problem:
        raise ConfigurationError(
            f"couldn't get version/kind; json parse error: {problem}"
        ) from problem
    if not isinstance(raw, dict):
        raw = {}
    _check_type(raw, text)
    decoder = Decoder(KIND)
    document: Object = decoder.decode(raw, CONFIGURATION)
    decoder.check()
    for number, profile in enumerate(document.get("profiles", ())):
        for index, item in enumerate(profile.get("pluginConfig", ())):
            item["args"] = _decoded_args(item, f".profiles[{number}].pluginConfig[{index}]")
    return document


def _check_type(raw: Object, text: str) -> None:
    if not raw.get("kind"):
        raise ConfigurationError(f"Object 'Kind' is missing in '{text.strip()}'")
    if not raw.get("apiVersion"):
        raise ConfigurationError(f"Object 'apiVersion' is missing in '{text.strip()}'")
    if raw["apiVersion"] != GROUP_VERSION or raw["kind"] != KIND:
        raise ConfigurationError(
            f'no kind "{raw["kind"]}" is registered for version "{raw["apiVersion"]}" in scheme '
            '"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme/scheme.go:30"'
        )


def _decoded_args(item: Object, path: str) -> Any:
    name, args = item.get("name", ""), item.get("args")
    if name not in ARGUMENTS or args is None:
        return args
    where = f"decoding {path}: decoding args for plugin {name}: "
    wanted = f"{name}Args"
    found = args.get("kind", wanted) if isinstance(args, dict) else wanted
    if found != wanted:
        group = GROUP_VERSION.split("/")[0]
        raise ConfigurationError(
            f"decoding {path}: args for plugin {name} were not of type {wanted}.{group}, "
            f"got {found}.{group}"
        )
    decoder = Decoder(wanted)
    try:
        decoded = decoder.decode(args, ARGUMENTS[name])
        decoder.check()
    except ConfigurationError as problem:
        raise ConfigurationError(where + str(problem)) from problem
    return decoded


def complete(raw: Object) -> Configuration:
    """Fill in defaults and validate; raises ConfigurationError with all errors."""
    document = with_defaults(raw)
    errors = configuration_errors(document)
    if errors:
        raise ConfigurationError(aggregated(errors))
    return _model(document)


def _model(document: Object) -> Configuration:
    election, client = document["leaderElection"], document["clientConnection"]
    extenders = tuple(_extender(item) for item in document.get("extenders", ()))
    ignored = [
        name
        for extender in extenders
        for name, by_scheduler in extender.managed_resources.items()
        if by_scheduler
    ]
    return Configuration(
        document=document,
        profiles=tuple(_profile(item, ignored) for item in document["profiles"]),
        extenders=extenders,
        leader_election=LeaderElection(
            enabled=election["leaderElect"],
            lease_seconds=parse_duration(election["leaseDuration"]),
            renew_seconds=parse_duration(election["renewDeadline"]),
            retry_seconds=parse_duration(election["retryPeriod"]),
            name=election["resourceName"],
            namespace=election["resourceNamespace"],
        ),
        parallelism=document["parallelism"],
        percentage_of_nodes_to_score=document["percentageOfNodesToScore"],
        initial_backoff_seconds=float(document["podInitialBackoffSeconds"]),
        max_backoff_seconds=float(document["podMaxBackoffSeconds"]),
        delay_cache_until_active=document["delayCacheUntilActive"],
        profiling=document["enableProfiling"],
        kubeconfig=client["kubeconfig"],
        qps=float(client["qps"]),
        burst=client["burst"],
    )


def _profile(profile: Object, ignored: list[str]) -> ProfileSpec:
    plugins = {
        point: PluginSet(
            tuple(
                PluginRef(ref["name"], ref.get("weight", 0))
                for ref in plugin_set.get("enabled", ())
            ),
            tuple(item["name"] for item in plugin_set.get("disabled", ())),
        )
        for point, plugin_set in profile["plugins"].items()
    }
    args = {item["name"]: item.get("args") or {} for item in profile["pluginConfig"]}
    if ignored and "NodeResourcesFit" in args:
        fit = dict(args["NodeResourcesFit"])
        fit["ignoredResources"] = [*fit.get("ignoredResources", ()), *ignored]
        args["NodeResourcesFit"] = fit
    percentage = profile.get("percentageOfNodesToScore")
    return ProfileSpec(profile["schedulerName"], plugins, args, percentage)


def _extender(raw: Object) -> ExtenderSpec:
    return ExtenderSpec(
        url_prefix=raw.get("urlPrefix", ""),
        filter_verb=raw.get("filterVerb", ""),
        preempt_verb=raw.get("preemptVerb", ""),
        prioritize_verb=raw.get("prioritizeVerb", ""),
        bind_verb=raw.get("bindVerb", ""),
        weight=raw.get("weight", 0),
        enable_https=raw.get("enableHTTPS", False),
        tls=raw.get("tlsConfig") or {},
        timeout_seconds=parse_duration(raw["httpTimeout"]),
        node_cache_capable=raw.get("nodeCacheCapable", False),
        managed_resources={
            item["name"]: item.get("ignoredByScheduler", False)
            for item in raw.get("managedResources") or ()
        },
        ignorable=raw.get("ignorable", False),
    )


def dump(configuration: Configuration) -> str:
    """Return the effective configuration as YAML, keys sorted."""
    text: str = yaml.safe_dump(configuration.document, sort_keys=True, default_flow_style=False)
    return text
