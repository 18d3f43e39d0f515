"""What a container runs, in the words of where it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skerry.edge.agent.program_words import PATH, below_root, contained, translated
from skerry.edge.agent.runtime import ContainerSpec, Image

ROOT = Path("/pods/p/root")


def spec(image: Image | None = None, **more: Any) -> ContainerSpec:
    found: dict[str, Any] = {
        "argv": (),
        "environment": {},
        "working_directory": "",
        "mounts": (),
        "ports": {80: 40080},
        "directory": Path("/pods/p"),
        **more,
    }
    return ContainerSpec(image or Image("web", "web@1"), **found)


SERVER = Image("web", "web@1", ("serve", "--port={port}"), ("--at={address}",))


def test_only_the_catalogues_words_have_places_that_are_filled() -> None:
    own = contained(spec(SERVER), ["serve", "--port={port}", "--at={address}"])
    assert own.argv == ("serve", "--port=40080", "--at=0.0.0.0")
    said = contained(spec(SERVER), ["serve", "--port={port}", "{port}"])
    assert said.argv == ("serve", "--port=40080", "{port}"), "a pod's text is never looked into"
    other = contained(spec(SERVER), ["sh", "-c", "{port}"])
    assert other.argv == ("sh", "-c", "{port}")


def test_without_a_network_of_its_own_ports_stand_for_others() -> None:
    found = contained(spec(SERVER), ["sh", ":80"], own_network=False)
    assert found.argv == ("sh", ":40080")
    assert contained(spec(SERVER), ["sh", ":80"]).argv == ("sh", ":80")
    assert (
        contained(spec(SERVER), [*SERVER.entrypoint, *SERVER.command], own_network=False).argv[-1]
        == "--at=127.0.0.1"
    )


def test_a_program_of_the_image_may_be_something_else_here() -> None:
    image = Image("web", "web@1", programs={"nginx": ("python", "-m", "web")})
    found = contained(spec(image), ["nginx", "-g", "x"])
    assert found.argv == ("python", "-m", "web", "-g", "x")


def test_the_environment_is_the_pods_over_the_images_over_ours() -> None:
    image = Image("web", "web@1", environment={"A": "image", "B": "{port}"})
    found = contained(spec(image, environment={"A": "pod"}), ["x"]).environment
    assert found == {
        "PATH": PATH,
        "HOME": "/root",
        "A": "pod",
        "B": "40080",
        "SKERRY_PORT_80": "40080",
    }


def test_where_files_are_the_machines_home_is_the_containers_root() -> None:
    found = translated(spec(), ["x"], ROOT)
    assert (found.environment["HOME"], found.environment["SKERRY_ROOT"]) == (str(ROOT), str(ROOT))
    assert found.working_directory == str(ROOT)
    there = translated(spec(working_directory="/srv/../../etc"), ["x", "80"], ROOT)
    assert there.working_directory == str(ROOT / "etc"), "no .. leads out"
    assert there.argv == ("x", "40080")


@pytest.mark.parametrize(
    ("path", "below"), [("", ""), ("/", ""), ("/a/b", "a/b"), ("../../x", "x"), ("/a/../..", "")]
)
def test_no_path_leads_out_of_a_root(path: str, below: str) -> None:
    assert below_root(path) == below


def test_of_several_ports_the_images_first_is_served() -> None:
    image = Image("web", "web@1", ("serve", "{port}"), ports=(443,))
    found = contained(spec(image, ports={80: 1080, 443: 1443}), ["serve", "{port}"])
    assert found.argv == ("serve", "1443")
    plain = Image("web", "web@1", ("serve", "{port}"))
    lowest = contained(spec(plain, ports={80: 1080, 443: 1443}), ["serve", "{port}"])
    assert lowest.argv == ("serve", "1080")
