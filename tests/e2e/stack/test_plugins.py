"""``kubectl kubestellar`` and completion against a running hub, as people type them."""

from __future__ import annotations

import base64
import json
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from skerry.api.edge_identity import bootstrap_secret_name
from tests.kit.e2e.installed import installed
from tests.kit.e2e.person import Person
from tests.kit.e2e.processes import refuse_old_kubectl

_WORKSPACES = "workspaces.tenancy.kcp.io"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("bin"))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[Path]:
    """A hub with its controllers; its kubeconfig."""
    refuse_old_kubectl()
    home = tmp_path_factory.mktemp("up")
    flags = ["--data-dir", str(home / "hub")]
    subprocess.run(
        [programs / "skerry", "up", "--init", "--detach", "--port", "0", *flags],
        check=True, timeout=60, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    yield home / "hub" / "admin.kubeconfig"
    subprocess.run([programs / "skerry", "down", *flags], check=True, timeout=60)


@pytest.fixture
def person(hub: Path, tmp_path: Path, programs: Path, request: pytest.FixtureRequest) -> Person:
    """Somebody in a workspace of their own."""
    made = Person(tmp_path, hub, programs)
    made("kubectl ws root")
    made(f"kubectl ws create w{abs(hash(request.node.name)) % 10**8} --enter")
    return made


@pytest.fixture(scope="module")
def visitor(hub: Path, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Somebody in a workspace for all tests that leave everything as it was."""
    made = Person(tmp_path_factory.mktemp("visitor"), hub, programs)
    made("kubectl ws root")
    made("kubectl ws create visited --enter")
    return made


def test_a_location_is_made_labelled_and_removed_and_nothing_is_said_twice(person: Person) -> None:
    home = person.workspace
    assert person.lines("kubectl kubestellar ensure location demo1 env=test") == [
        "synctarget.workload.kcp.io/demo1 created",
        "location.scheduling.kcp.io/demo1 created",
        'location.scheduling.kcp.io "default" deleted',
    ]
    assert person.lines("kubectl kubestellar ensure location demo1 env=test") == []
    assert person.lines("kubectl kubestellar ensure location demo1 env=prod") == [
        "synctarget.workload.kcp.io/demo1 labeled",
        "location.scheduling.kcp.io/demo1 labeled",
    ]
    rows = person("kubectl get synctargets,locations --show-labels").out
    assert "env=prod,id=demo1" in rows
    # From elsewhere, by path; the current workspace stays what it is.
    person("kubectl ws root")
    assert person.lines(f"kubectl kubestellar ensure location demo1 env=prod --imw {home}") == []
    assert person.workspace == "root"
    assert person.lines(f"kubectl kubestellar remove location demo1 --imw {home}") == [
        'location.scheduling.kcp.io "demo1" deleted',
        'synctarget.workload.kcp.io "demo1" deleted',
    ]
    assert person.workspace == "root"
    person(f"kubectl kubestellar ensure location demo2 env=prod --imw {home} --enter")
    assert person.workspace == home
    assert person.lines("kubectl kubestellar remove location demo1") == []
    assert "demo1" not in person("kubectl get synctargets,locations").out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ensure location", "a location name must be given"),
        ("ensure location demo1", "at least one label must be given"),
        ("ensure location demo1 env", "not a valid label assignment"),
        ("ensure location demo1 id=x", "label 'id' is reserved"),
        ("ensure location default env=x", "location name 'default' is taken"),
        ("ensure location Demo env=x", "must be a lower-case DNS name"),
        ("remove location", "exactly one location name must be given, found 0"),
        ("remove wmw a b", "exactly one workspace name must be given, found 2"),
        ("ensure wmw x --with-kube maybe", "--with-kube must be true or false"),
        ("ensure nothing", "unknown command 'ensure nothing'; see --help"),
        ("remove location x --nonsense", "unknown flag: --nonsense"),
    ],
)
def test_a_mistake_is_reported_in_one_line_and_ends_with_one(
    visitor: Person, words: str, expected: str
) -> None:
    said = visitor(f"kubectl kubestellar {words}", code=1)
    assert said.out == ""
    # kubectl adds a line of its own about the exit code.
    line = said.err.splitlines()[0]
    assert line.startswith("kubectl-kubestellar: ")
    assert expected in line


def test_a_workload_workspace_is_made_with_its_bindings_and_removed(person: Person) -> None:
    home = person.workspace
    made = person.lines("kubectl kubestellar ensure wmw work")
    assert made[:3] == [
        "workspace.tenancy.kcp.io/work created",
        "apibinding.apis.kcp.io/bind-espw created",
        "apibinding.apis.kcp.io/bind-kubernetes created",
    ]
    assert len(made) == 11
    assert person.workspace == f"{home}:work"
    person("kubectl get deployments,edgeplacements -A")
    again = person("kubectl kubestellar ensure wmw work --with-kube false")
    assert again.err.startswith(f"Warning: {home} has a workspace 'work' too")
    person(f"kubectl ws {home}")
    without = person.lines("kubectl kubestellar ensure wmw work --with-kube false")
    assert 'apibinding.apis.kcp.io "bind-kubernetes" deleted' in without
    assert len(without) == 9
    person(f"kubectl ws {home}")
    assert person.lines("kubectl kubestellar remove wmw work") == [
        'workspace.tenancy.kcp.io "work" deleted'
    ]
    assert person.lines("kubectl kubestellar remove wmw nobody") == []
    assert person.workspace == home


def test_a_cluster_is_prepared_in_one_step_and_again_without_harm(person: Person) -> None:
    home = person.workspace
    lines = person.lines("kubectl kubestellar prep-for-cluster pcluster env=prod")
    assert lines[0] == "synctarget.workload.kcp.io/pcluster created"
    (expected,) = [line for line in lines if line.startswith("Wrote physical cluster manifest to")]
    assert "to pcluster-syncer.yaml for namespace" in expected
    manifest = person.folder / "pcluster-syncer.yaml"
    assert stat.S_IMODE(manifest.stat().st_mode) == 0o600
    kinds = [each["kind"] for each in yaml.safe_load_all(manifest.read_text())]
    assert kinds[:2] == ["Namespace", "ServiceAccount"]
    assert kinds[-3:] == ["Secret", "PersistentVolumeClaim", "Deployment"]
    assert person.workspace == home
    again = person.lines("kubectl kubestellar prep-for-cluster pcluster env=prod -o -")
    first, second = manifest.read_text(), "\n".join(again)
    names = [each["metadata"]["name"] for each in yaml.safe_load_all(first)]
    assert names == [each["metadata"]["name"] for each in yaml.safe_load_all(second)]
    person("kubectl kubestellar prep-for-syncer pcluster --trust admin -o admin.yaml")
    assert "'*'" in (person.folder / "admin.yaml").read_text()
    assert approved(person, first) == "true"
    strict = person("kubectl kubestellar prep-for-syncer pcluster --require-approval -o -").out
    assert approved(person, strict) == "false"


def approved(person: Person, manifest: str) -> str:
    """Return whether the first key that redeems a manifest needs no approval."""
    (text,) = [
        each["stringData"]["kubeconfig"]
        for each in yaml.safe_load_all(manifest)
        if "stringData" in each
    ]
    config = yaml.safe_load(text)
    server = config["clusters"][0]["cluster"]["server"]
    name = bootstrap_secret_name(config["users"][0]["user"]["token"].split(".")[1])
    path = f"{urlsplit(server).path}/api/v1/namespaces/default/secrets/{name}"
    secret = json.loads(person(f"kubectl --context base get --raw {path}").out)
    return base64.b64decode(secret["data"]["approved"]).decode()


def test_a_workload_workspace_is_entered_unless_asked_not_to(person: Person) -> None:
    home = person.workspace
    person("kubectl kubestellar ensure wmw quiet --enter=false")
    assert person.workspace == home


@pytest.mark.parametrize(
    "words",
    [
        "kubectl kubestellar ensure location x a=b --imw root:nothere",
        "kubectl kubestellar ensure location x a=b --imw root:nothere:deeper",
        "kubectl kubestellar remove location x --imw root:nothere",
        "kubectl ws root:nothere",
        "kubectl ws root:nothere:deeper",
        "kubectl ws use root:nothere:deeper:still",
    ],
)
def test_a_workspace_that_is_missing_is_not_found(visitor: Person, words: str) -> None:
    said = visitor(words, code=1)
    assert 'workspace "root:nothere" not found' in said.err.splitlines()[0]
    assert visitor.workspace == "root:visited"


def test_a_syncer_of_a_missing_workspace_is_refused_likewise(visitor: Person) -> None:
    for words in (
        "kubectl kubestellar prep-for-syncer x --imw root:nothere",
        "skerry edge bootstrap x --imw root:nothere",
        "skerry edge revoke x --imw root:nothere",
    ):
        assert 'workspace "root:nothere" not found' in visitor(words, code=5).err


def test_those_without_rights_do_not_learn_what_is_missing(person: Person) -> None:
    person("kubectl create serviceaccount stranger")
    token = person("kubectl create token stranger").out.strip()
    answers = {
        person(f"kubectl ws {path} --token {token}", code=1).err.replace(path, "PATH")
        for path in ("root:nothere", "root:espw", "root:espw:nothere")
    }
    assert len(answers) == 1, "what is there and what is not look the same to them"
    assert "not found" not in answers.pop()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("creat x", 'unknown command "creat" for "workspace"\n\nDid you mean this?\n\tcreate\n'),
        ("x y", 'unknown command "x" for "workspace"\nRun'),
        ("tree x", "accepts 0 arg(s), received 1"),
        ("use a b", "accepts 1 arg(s), received 2"),
        ("create", "accepts 1 arg(s), received 0"),
        (
            "creat",
            f'{_WORKSPACES} "creat" not found; there is a command kubectl ws create',
        ),
        ("nothere", f'{_WORKSPACES} "nothere" not found\n'),
        (". --kubeconfig nofile", "stat nofile: no such file or directory"),
    ],
)
def test_a_wrong_word_for_a_workspace_is_no_success(
    visitor: Person, words: str, expected: str
) -> None:
    said = visitor(f"kubectl ws {words}", code=1)
    assert said.out == ""
    assert said.err.startswith(f"Error: {expected}")


def test_what_stands_in_the_way_of_a_syncer_has_its_own_exit_code(person: Person) -> None:
    said = person("kubectl kubestellar prep-for-syncer nobody", code=5)
    assert "has no SyncTarget 'nobody': make it with kubectl kubestellar ensure" in said.err
    person("kubectl kubestellar ensure location there env=x")
    said = person("kubectl kubestellar prep-for-syncer there --espw root:nowhere", code=2)
    assert "root:nowhere is no edge service provider workspace" in said.err


def test_without_a_hub_it_is_said_where_to_look(tmp_path: Path, programs: Path) -> None:
    config = tmp_path / "nowhere"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c,"
        " clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1/clusters/root'}}],"
        " users: [], contexts: [{name: c, context: {cluster: c, user: ''}}]}"
    )
    person = Person(tmp_path, config, programs)
    said = person("kubectl kubestellar remove wmw x", code=1)
    assert said.err.startswith("kubectl-kubestellar: no hub answers: cannot connect")
    assert "See skerry status" in said.err


def test_kubectl_finds_the_hub_of_its_own_age(visitor: Person) -> None:
    said = visitor("kubectl version")
    assert "Server Version: v1.32." in said.out
    assert said.err == "", "it warns of versions that differ by more than one"


def test_help_is_no_failure(visitor: Person) -> None:
    assert "prep-for-cluster NAME KEY=VALUE" in visitor("kubectl kubestellar -h").out


def test_kubectl_completes_the_plugins_by_what_the_hub_has(person: Person) -> None:
    def offered(words: str, begun: str = "") -> list[str]:
        done = subprocess.run(
            ["kubectl", "__complete", *words.split(), begun], cwd=person.folder,
            env=person._environment, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        *found, _ = done.stdout.splitlines()
        return found

    assert offered("kubestellar") == ["ensure", "remove", "prep-for-cluster", "prep-for-syncer"]
    assert offered("kubestellar remove", "l") == ["location"]
    person("kubectl kubestellar ensure location here env=x")
    assert offered("kubestellar remove location") == ["here"]
    assert offered("kubestellar prep-for-syncer", "h") == ["here"]
    assert "--trust" in offered("kubestellar prep-for-syncer here", "--")
    person("kubectl ws create child")
    assert offered("ws", "c") == ["create", "create-context", "current", "child"]
    assert offered("ws use") == ["child"]
    assert offered("ws use", f"{person.workspace}:c") == [f"{person.workspace}:child"]
    assert "espw" in offered("kcp ws use", "root:e")[0]
