"""Configuration files are read, completed and refused as kube-scheduler does."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from skerry.scheduler.config.defaults import DEFAULT_PLUGINS
from skerry.scheduler.config.errors import ConfigurationError
from skerry.scheduler.config.load import complete, default_configuration, dump, load
from skerry.scheduler.config.schema import format_duration, parse_duration

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(HEAD + text)
    return str(caught.value)


def refused(**fields: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        complete(fields)
    return str(caught.value)


def test_an_empty_file_means_the_defaults() -> None:
    config = load(HEAD)
    assert config.profiles[0].scheduler_name == "default-scheduler"
    assert config.leader_election.enabled
    assert (config.leader_election.namespace, config.leader_election.name) == (
        "kube-system",
        "kube-scheduler",
    )
    assert (config.initial_backoff_seconds, config.max_backoff_seconds) == (1.0, 10.0)
    assert (config.qps, config.burst, config.parallelism) == (50.0, 100, 16)
    names = [(ref.name, ref.weight) for ref in config.profiles[0].at("multiPoint").enabled]
    assert tuple(names) == DEFAULT_PLUGINS


def test_what_is_written_reads_back_as_the_same() -> None:
    config = default_configuration()
    text = dump(config)
    assert load(text) == config
    assert "acceptContentTypes: ''" in text
    assert yaml.safe_load(text)["clientConnection"]["contentType"] == (
        "application/vnd.kubernetes.protobuf"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo: 1\n", 'strict decoding error: unknown field "foo"'),
        (
            "leaderElection: {bar: 1}\nprofiles: [{baz: 2}]\n",
            (
                'strict decoding error: unknown field "leaderElection.bar", '
                'unknown field "profiles[0].baz"'
            ),
        ),
        (
            "parallelism: many\n",
            (
                "json: cannot unmarshal string into Go struct field "
                "KubeSchedulerConfiguration.parallelism of type int32"
            ),
        ),
        (
            "parallelism: 1\nparallelism: 2\n",
            (
                "strict decoding error: yaml: unmarshal errors:\n"
                '  line 4: key "parallelism" already set in map'
            ),
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignored: []}}]}]\n",
            (
                "decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeResourcesFit: "
                'strict decoding error: unknown field "ignored"'
            ),
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeAffinity, args: {kind: FooArgs}}]}]\n",
            (
                "decoding .profiles[0].pluginConfig[0]: args for plugin NodeAffinity were not of "
                "type NodeAffinityArgs.kubescheduler.config.k8s.io, got "
                "FooArgs.kubescheduler.config.k8s.io"
            ),
        ),
    ],
)
def test_decoding_is_strict(text: str, message: str) -> None:
    assert refusal(text) == message


def test_another_version_is_not_registered() -> None:
    text = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    assert str(caught.value).startswith(
        'no kind "KubeSchedulerConfiguration" is registered for version '
        '"kubescheduler.config.k8s.io/v1beta3"'
    )


def test_a_file_without_a_kind_says_what_is_missing() -> None:
    with pytest.raises(ConfigurationError, match="Object 'Kind' is missing in"):
        load("apiVersion: kubescheduler.config.k8s.io/v1\n")


def test_all_errors_are_collected() -> None:
    assert refused(
        parallelism=0,
        percentageOfNodesToScore=101,
        podInitialBackoffSeconds=0,
        podMaxBackoffSeconds=-1,
    ) == (
        "[parallelism: Invalid value: 0: should be an integer value greater than zero, "
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100], "
        "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0, "
        "podMaxBackoffSeconds: Invalid value: -1: "
        "must be greater than or equal to PodInitialBackoffSeconds]"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"profiles": [{}, {"schedulerName": "b"}]},
            "profiles[0].schedulerName: Required value",
        ),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            "profiles[1].schedulerName: Duplicate value: profiles[0].schedulerName",
        ),
        (
            {"leaderElection": {"leaseDuration": "5s"}},
            (
                'leaderElection.leaseDuration: Invalid value: "10s": '
                "LeaseDuration must be greater than RenewDeadline"
            ),
        ),
        (
            {"leaderElection": {"resourceLock": "endpoints"}},
            (
                'leaderElection.resourceLock: Invalid value: "endpoints": '
                'resourceLock value must be "leases"'
            ),
        ),
        (
            {"clientConnection": {"burst": -1}},
            "clientConnection.burst: Invalid value: -1: must be non-negative",
        ),
        (
            {"extenders": [{"urlPrefix": "http://e", "prioritizeVerb": "p"}]},
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        (
            {"extenders": [{"bindVerb": "b"}, {"bindVerb": "b"}]},
            (
                'extenders: Invalid value: "found 2 extenders implementing bind": '
                "only one extender can implement bind"
            ),
        ),
        (
            {"extenders": [{"managedResources": [{"name": "kubernetes.io/x"}]}]},
            (
                'extenders[0].managedResources[0].name: Invalid value: "kubernetes.io/x": '
                "is an invalid extended resource name"
            ),
        ),
        (
            {
                "profiles": [
                    {"plugins": {"filter": {"enabled": [{"name": "EBSLimits"}]}}},
                ]
            },
            (
                'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in '
                'version "kubescheduler.config.k8s.io/v1" (KubeSchedulerConfiguration is version '
                '"kubescheduler.config.k8s.io/v1")'
            ),
        ),
        (
            {
                "profiles": [
                    {
                        "pluginConfig": [
                            {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}
                        ]
                    }
                ]
            },
            (
                "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: "
                "not in valid range [0, 100]"
            ),
        ),
        (
            {
                "profiles": [
                    {
                        "pluginConfig": [
                            {
                                "name": "PodTopologySpread",
                                "args": {"defaultConstraints": [{"maxSkew": 0}]},
                            }
                        ]
                    }
                ]
            },
            (
                "[profiles[0].pluginConfig[0].args.defaultingType: "
                'Invalid value: "System": when .defaultConstraints are not empty, '
                "profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: "
                "Invalid value: 0: not in valid range (0, inf), "
                "profiles[0].pluginConfig[0].args.defaultConstraints[0].topologyKey: "
                "Required value: can not be empty, "
                "profiles[0].pluginConfig[0].args.defaultConstraints[0].whenUnsatisfiable: "
                "Required value: can not be empty]"
            ),
        ),
    ],
)
def test_invalid_configurations_are_refused_in_kube_schedulers_words(
    fields: dict[str, Any], message: str
) -> None:
    assert refused(**fields) == message


def test_two_profiles_must_share_the_order_of_the_queue() -> None:
    other = {"queueSort": {"enabled": [{"name": "Mine"}], "disabled": [{"name": "*"}]}}
    message = refused(profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "plugins": other}])
    assert message.startswith("profiles[1].plugins.queueSort: Invalid value: ")
    assert message.endswith("queueSort must be the same for all profiles")


def test_zero_client_rates_are_defaulted_again() -> None:
    config = complete({"clientConnection": {"qps": 0, "burst": 0}})
    assert (config.qps, config.burst) == (50.0, 100)


def test_resources_of_extenders_are_not_counted_by_the_fit_plugin() -> None:
    managed = [{"name": "example.com/foo", "ignoredByScheduler": True}]
    config = complete({"extenders": [{"urlPrefix": "http://e", "managedResources": managed}]})
    assert config.profiles[0].args["NodeResourcesFit"]["ignoredResources"] == ["example.com/foo"]


def test_a_reconfigured_default_plugin_keeps_its_place() -> None:
    config = complete(
        {
            "profiles": [
                {
                    "plugins": {
                        "multiPoint": {
                            "enabled": [{"name": "Mine"}, {"name": "NodeAffinity", "weight": 7}],
                            "disabled": [{"name": "ImageLocality"}],
                        }
                    }
                }
            ]
        }
    )
    refs = config.profiles[0].at("multiPoint").enabled
    names = [ref.name for ref in refs]
    assert names.index("NodeAffinity") == [n for n, _ in DEFAULT_PLUGINS].index("NodeAffinity")
    assert next(ref.weight for ref in refs if ref.name == "NodeAffinity") == 7
    assert names[-1] == "Mine"
    assert "ImageLocality" not in names


@pytest.mark.parametrize(
    ("text", "seconds"), [("15s", 15), ("1m30s", 90), ("1h0m0s", 3600), ("100ms", 0.1), ("0", 0)]
)
def test_durations_are_gos(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_a_duration_without_a_unit_is_refused() -> None:
    with pytest.raises(ConfigurationError, match='time: invalid duration "15"'):
        parse_duration("15")


@pytest.mark.parametrize("text", ["15s", "1m30s", "1h0m0s", "100ms", "0s"])
def test_durations_are_printed_as_they_are_read(text: str) -> None:
    assert format_duration(parse_duration(text)) == text
