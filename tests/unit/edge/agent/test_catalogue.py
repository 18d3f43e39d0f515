"""Which programs stand for which images."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.edge.agent.catalogue import (
    Catalogue,
    CatalogueError,
    parse_catalogue,
    repository,
)
from skerry.edge.agent.runtime import ImageNotFound


class TestCatalogue:
    @pytest.mark.parametrize(
        ("reference", "expected"),
        [
            ("httpd", "docker.io/library/httpd"),
            ("library/httpd:2.4", "docker.io/library/httpd"),
            ("docker.io/library/httpd@sha256:abc", "docker.io/library/httpd"),
            ("acme/web:1", "docker.io/acme/web"),
            ("localhost:5000/web:1", "localhost:5000/web"),
            ("ghcr.io/acme/web", "ghcr.io/acme/web"),
        ],
    )
    def test_references_are_reduced_to_repositories(self, reference: str, expected: str) -> None:
        assert repository(reference) == expected

    def test_built_in_images_are_known_under_every_spelling(self) -> None:
        catalogue = Catalogue()
        one, two = catalogue.find("httpd"), catalogue.find("docker.io/library/httpd:2.4")
        assert one.identity == two.identity
        assert one.ports == (80,)

    def test_a_users_file_adds_replaces_and_is_read_again(self, tmp_path: Path) -> None:
        path = tmp_path / "images.yaml"
        catalogue = Catalogue(path)
        with pytest.raises(ImageNotFound, match=r"add an entry for docker.io/acme/web in .*images"):
            catalogue.find("acme/web:1")
        path.write_text("images:\n- names: [acme/web, httpd]\n  entrypoint: [/opt/web]\n")
        assert catalogue.find("acme/web:1").entrypoint == ("/opt/web",)
        assert catalogue.find("httpd").entrypoint == ("/opt/web",)
        path.unlink()
        assert catalogue.find("httpd").entrypoint == ("httpd-foreground",)

    def test_a_file_that_breaks_leaves_what_was_known_and_says_so(self, tmp_path: Path) -> None:
        path = tmp_path / "images.yaml"
        path.write_text("images:\n- names: [acme/web]\n  entrypoint: [/opt/web]\n")
        catalogue = Catalogue(path)
        catalogue.find("acme/web")
        path.write_text("images: nonsense")
        assert catalogue.find("acme/web").entrypoint == ("/opt/web",)
        with pytest.raises(ImageNotFound, match="want a list under 'images'"):
            catalogue.find("acme/other")

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("images: 3", "want a list under 'images'"),
            ("images: [{entrypoint: [x]}]", r"images\[0\]: want a mapping with 'names'"),
            ("images: [{names: [x], colour: red}]", r"images\[0\]: unknown colour"),
            ("images: [{names: [x], entrypoint: y}]", "want a list of texts"),
            (": [", "f.yaml"),
        ],
    )
    def test_a_faulty_file_names_its_fault(self, text: str, fault: str) -> None:
        with pytest.raises(CatalogueError, match=fault):
            parse_catalogue(text, "f.yaml")
