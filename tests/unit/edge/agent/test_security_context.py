"""Security contexts as they come out for one container, and root that is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.edge.agent.environment import ConfigurationMissing
from skerry.edge.agent.runtime import Abilities, Confinement, Image
from skerry.edge.agent.security_context import (
    ADDABLE_CAPABILITIES,
    CAPABILITIES,
    DEFAULT_CAPABILITIES,
    capabilities,
    common_user,
    confinement,
    containers_of,
    effective,
    file_group,
    run_as,
)

ALL = Abilities(users="any", capabilities=frozenset(CAPABILITIES), seccomp=True)


def container(**context: Any) -> Object:
    return {"name": "c", "securityContext": context}


def pod(*containers: Object, **context: Any) -> Object:
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": list(containers), "securityContext": context},
    }


def confined(
    own: Object, image: Image | None = None, abilities: Abilities = ALL, **context: Any
) -> Confinement:
    return confinement(pod(own, **context), own, image or Image("i", "i"), abilities, 1000)


def test_capabilities_have_the_numbers_of_the_kernel() -> None:
    assert len(CAPABILITIES) == 41
    assert CAPABILITIES.index("NET_BIND_SERVICE") == 10
    assert CAPABILITIES.index("SYS_ADMIN") == 21
    assert CAPABILITIES.index("CHECKPOINT_RESTORE") == 40
    assert set(CAPABILITIES) >= DEFAULT_CAPABILITIES | ADDABLE_CAPABILITIES


@pytest.mark.parametrize(
    ("own", "of_pod", "wanted"), [(1, 2, 1), (None, 2, 2), (None, None, None), (0, 2, 0)]
)
def test_a_containers_own_field_goes_before_its_pods(
    own: int | None, of_pod: int | None, wanted: int | None
) -> None:
    each = container(runAsUser=own)
    assert effective(pod(each, runAsUser=of_pod), each, "runAsUser") == wanted


@given(
    st.sets(st.sampled_from(["ALL", "CHOWN", "cap_net_raw", "SYS_TIME"])),
    st.sets(st.sampled_from(["CHOWN", "NET_ADMIN", "SYS_TIME"])),
)
def test_what_is_dropped_by_name_goes_whoever_added_it(drop: set[str], add: set[str]) -> None:
    found = capabilities(container(capabilities={"drop": sorted(drop), "add": sorted(add)}))
    assert "CHOWN" not in found or "CHOWN" not in drop
    assert "NET_RAW" not in found or "cap_net_raw" not in drop
    if "ALL" in drop:
        assert found == add - drop
    else:
        assert found == (DEFAULT_CAPABILITIES | add) - {
            each.upper().removeprefix("CAP_") for each in drop
        }


def test_no_container_gets_more_than_the_machine_can_enforce() -> None:
    few = Abilities(users="any", capabilities=frozenset({"CHOWN"}))
    found = confined(container(), abilities=few)
    assert found.capabilities == frozenset({CAPABILITIES.index("CHOWN")})


@pytest.mark.parametrize(
    ("own", "image", "wanted"),
    [
        ({}, Image("i", "i", user=5, group=6), (5, 6)),
        ({"runAsUser": 7}, Image("i", "i", user=5, group=6), (7, 0)),
        ({"runAsGroup": 8}, Image("i", "i", user=5, group=6), (5, 8)),
        ({"runAsUser": 7, "runAsGroup": 8}, Image("i", "i"), (7, 8)),
        ({}, Image("i", "i"), (None, None)),
    ],
)
def test_who_a_container_runs_as(
    own: Object, image: Image, wanted: tuple[int | None, int | None]
) -> None:
    each = container(**own)
    assert run_as(pod(each), each, image) == wanted


def test_further_groups_are_named_once_and_volumes_have_one() -> None:
    found = confined(container(), supplementalGroups=[5, 6, 5], fsGroup=6)
    assert found.groups == (5, 6)
    assert file_group(pod(container(), fsGroup=6)) == 6
    assert file_group(pod(container())) is None


@pytest.mark.parametrize(
    ("own", "image", "why"),
    [
        ({"runAsUser": 0}, Image("i", "i"), "runAsUser breaks non-root policy"),
        ({}, Image("i", "i", user_name="www"), r"image has non-numeric user \(www\)"),
        ({}, Image("i", "i"), "image will run as root"),
        ({}, Image("i", "i", user=0), "image will run as root"),
    ],
)
def test_root_is_refused_in_kubelets_words(own: Object, image: Image, why: str) -> None:
    with pytest.raises(ConfigurationMissing, match=why):
        confined(container(**own), image, runAsNonRoot=True)


def test_anybody_else_is_not() -> None:
    assert confined(container(runAsUser=5), runAsNonRoot=True).user == 5
    assert confined(container(), Image("i", "i", user=5), runAsNonRoot=True).user == 5
    assert confined(container(runAsNonRoot=False), runAsNonRoot=True).user is None
    own = Abilities(users="own")
    assert confined(container(), abilities=own, runAsNonRoot=True).user is None


def test_the_filter_of_system_calls_is_on_unless_the_pod_says() -> None:
    off: Any = {"seccompProfile": {"type": "Unconfined"}}
    assert confined(container()).seccomp is True
    assert confined(container(**off)).seccomp is False
    assert confined(container(), **off).seccomp is False
    assert confined(container(), abilities=Abilities(users="any")).seccomp is False


def test_one_user_can_be_named_when_all_ask_for_the_same() -> None:
    assert common_user(pod(container(runAsUser=5), container(runAsUser=5))) == 5
    assert common_user(pod(container(runAsUser=5), container())) is None
    assert common_user(pod(container(), container(), runAsUser=7)) == 7


def test_containers_of_every_sort_are_found_with_their_paths() -> None:
    spec = {"initContainers": [{"name": "i"}], "containers": [{"name": "c"}],
            "ephemeralContainers": [{"name": "e"}]}  # fmt: skip
    assert [(path, each["name"]) for path, each in containers_of({"spec": spec})] == [
        ("spec.initContainers[0]", "i"),
        ("spec.containers[0]", "c"),
        ("spec.ephemeralContainers[0]", "e"),
    ]
