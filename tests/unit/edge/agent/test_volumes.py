"""Volumes: what is in them, who owns it, and that nothing is written outside."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.edge.agent.beneath import LeadsOut
from skerry.edge.agent.environment import ConfigurationMissing, expanded_strictly
from skerry.edge.agent.host_access import HostAccess, host_path_refusal
from skerry.edge.agent.ownership import belongs_to, give_to_group
from skerry.edge.agent.runtime import Mount, Volume
from skerry.edge.agent.security_context import common_user, file_group
from skerry.edge.agent.volume_files import File, write_files
from skerry.edge.agent.volumes import MountFailed, Sources, set_up, takes_group
from tests.kit.agent.fixtures import FACTS, POD

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def sources(access: HostAccess | None = None, **objects: Object) -> Sources:
    def claim_volume(name: str) -> Volume:
        raise MountFailed(f"no claim {name}")

    return Sources(
        FACTS,
        lambda kind, name: objects.get(name),
        lambda source: "token" if source["path"] == "token" else None,
        claim_volume,
        access or HostAccess(),
    )


def config_map(**items: Any) -> Object:
    return {"name": "v", "configMap": {"name": "cm", **items}}


class TestFiles:
    def test_content_is_replaced_as_a_whole(self, tmp_path: Path) -> None:
        files = {"a": File(b"1", 0o644), "d/b": File(b"2", 0o600)}
        assert write_files(tmp_path, files)
        first = (tmp_path / "..data").readlink()
        assert (tmp_path / "a").read_bytes() == b"1"
        assert (tmp_path / "d" / "b").stat().st_mode & 0o777 == 0o600
        assert not write_files(tmp_path, files)
        assert write_files(tmp_path, {"a": File(b"3", 0o644)})
        assert (tmp_path / "a").read_bytes() == b"3"
        assert not (tmp_path / "d").exists()
        assert not (tmp_path / first).exists()

    def test_another_mode_is_another_content(self, tmp_path: Path) -> None:
        assert write_files(tmp_path, {"a": File(b"1", 0o644)})
        assert write_files(tmp_path, {"a": File(b"1", 0o400)})
        assert not write_files(tmp_path, {"a": File(b"1", 0o400)})

    def test_a_link_that_a_container_turned_elsewhere_costs_nothing_there(
        self, tmp_path: Path
    ) -> None:
        volume, elsewhere = tmp_path / "volume", tmp_path / "elsewhere"
        volume.mkdir()
        elsewhere.mkdir()
        (elsewhere / "precious").write_text("kept")
        assert write_files(volume, {"a": File(b"1", 0o644)})
        (volume / "..data").unlink()
        (volume / "..data").symlink_to("../elsewhere")
        assert write_files(volume, {"a": File(b"2", 0o644)})
        assert (volume / "a").read_bytes() == b"2"
        assert (elsewhere / "precious").read_text() == "kept"

    def test_links_and_pipes_in_the_shown_version_are_neither_read_nor_written(
        self, tmp_path: Path
    ) -> None:
        volume, outside = tmp_path / "volume", tmp_path / "outside"
        volume.mkdir()
        outside.write_text("1")
        assert write_files(volume, {"a": File(b"1", 0o644)})
        version = volume / (volume / "..data").readlink()
        (version / "a").unlink()
        (version / "a").symlink_to(outside)
        assert write_files(volume, {"a": File(b"1", 0o644)}), "a link is not the file"
        version = volume / (volume / "..data").readlink()
        (version / "a").unlink()
        os.mkfifo(version / "a")
        assert write_files(volume, {"a": File(b"1", 0o644)}), "nor is a pipe, which would block"
        assert outside.read_text() == "1"

    @pytest.mark.parametrize(
        "name", ["../x", "/etc/x", "..data", "..data/x", "..0/x", "a/../../x", "", ".", "a\0b"]
    )
    def test_no_file_leaves_its_volume_or_takes_its_machinery(
        self, tmp_path: Path, name: str
    ) -> None:
        volume = tmp_path / "volume"
        volume.mkdir()
        with pytest.raises(LeadsOut):
            write_files(volume, {"good": File(b"", 0o644), name: File(b"", 0o644)})
        assert os.listdir(volume) == [], "refused before anything was written"
        assert os.listdir(tmp_path) == ["volume"]

    def test_a_volume_that_is_a_link_is_not_written_to(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "volume").symlink_to("real")
        with pytest.raises(OSError, match="volume"):
            write_files(tmp_path / "volume", {"a": File(b"1", 0o644)})
        assert os.listdir(tmp_path / "real") == []

    @as_root
    def test_files_are_given_to_a_group_that_may_read_them(self, tmp_path: Path) -> None:
        assert write_files(tmp_path, {"a": File(b"1", 0o400), "b": File(b"", 0o600, 7)}, 4242)
        status = (tmp_path / "a").stat()
        assert (status.st_gid, stat.S_IMODE(status.st_mode)) == (4242, 0o440)
        assert (tmp_path / "b").stat().st_uid == 7
        assert not write_files(tmp_path, {"a": File(b"1", 0o400), "b": File(b"", 0o600, 7)}, 4242)


class TestContent:
    def test_items_choose_keys_and_a_missing_one_is_named(self, tmp_path: Path) -> None:
        item = {"key": "k", "path": "sub/file", "mode": 0o400}
        volume = config_map(items=[item])
        found = set_up(tmp_path, volume, sources(cm={"data": {"k": "x", "other": "y"}}))
        assert (found.root / "sub" / "file").read_text() == "x"
        assert not (found.root / "other").exists()
        with pytest.raises(MountFailed, match="references non-existent configmap key: k"):
            set_up(tmp_path, volume, sources(cm={"data": {}}))

    def test_projected_sources_come_together(self, tmp_path: Path) -> None:
        field = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
        parts = [
            {"serviceAccountToken": {"path": "token"}},
            {"configMap": {"name": "ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [field]}},
        ]
        volume = {"name": "v", "projected": {"sources": parts}}
        path = set_up(tmp_path, volume, sources(ca={"data": {"ca.crt": "C"}})).root
        assert {p.name for p in path.iterdir() if not p.name.startswith("..")} == {
            "token",
            "ca.crt",
            "namespace",
        }
        assert (path / "namespace").read_text() == "ns"

    def test_labels_are_written_quoted_and_sorted(self, tmp_path: Path) -> None:
        item = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
        volume = {"name": "v", "downwardAPI": {"items": [item]}}
        found = set_up(tmp_path, volume, sources())
        assert (found.root / "labels").read_text() == 'a="say \\"hi\\""\nb="2"'

    @pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "..data", "a/../../b"])
    def test_no_item_leaves_its_volume(self, tmp_path: Path, path: str) -> None:
        volume = config_map(items=[{"key": "k", "path": path}])
        with pytest.raises(MountFailed, match="the path"):
            set_up(tmp_path, volume, sources(cm={"data": {"k": "x"}}))
        down = {"path": path, "fieldRef": {"fieldPath": "metadata.name"}}
        with pytest.raises(MountFailed, match="the path"):
            set_up(tmp_path, {"name": "v", "downwardAPI": {"items": [down]}}, sources())

    def test_keys_that_are_paths_are_refused(self, tmp_path: Path) -> None:
        for key in ("../x", "..data", "/x"):
            with pytest.raises(MountFailed, match="the path"):
                set_up(tmp_path, config_map(), sources(cm={"data": {key: "x"}}))

    @pytest.mark.parametrize("kind", ["configMap", "secret", "downwardAPI", "projected"])
    def test_what_follows_objects_is_read_only(self, tmp_path: Path, kind: str) -> None:
        source = {"name": "cm", "secretName": "cm"} if kind in ("configMap", "secret") else {}
        found = set_up(tmp_path, {"name": "v", kind: source}, sources(cm={"data": {}}))
        assert found.read_only
        assert found.links
        assert Mount("/x", found).is_read_only

    def test_an_empty_directory_is_everybodys_and_writable(self, tmp_path: Path) -> None:
        found = set_up(tmp_path, {"name": "v", "emptyDir": {}}, sources())
        assert (found.read_only, found.links) == (False, False)
        assert stat.S_IMODE(found.root.stat().st_mode) == 0o777

    def test_an_unsupported_kind_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(MountFailed, match="volumes of type nfs are not supported"):
            set_up(tmp_path, {"name": "v", "nfs": {"server": "x"}}, sources())


def host_path(path: object, kind: str = "") -> Object:
    return {"name": "v", "hostPath": {"path": str(path), "type": kind}}


class TestHostPaths:
    @pytest.mark.parametrize(
        ("path", "allowed"),
        [
            ("/srv/data", True),
            ("/srv/data/x", True),
            ("//srv//data/./x/", True),
            ("/srv/database", False),
            ("/srv", False),
            ("/", False),
            ("/etc/shadow", False),
            ("/srv/data/../../etc", False),
            ("srv/data", False),
            ("", False),
        ],
    )
    def test_a_path_must_lie_below_an_allowed_folder(self, path: str, allowed: bool) -> None:
        assert bool(host_path_refusal(path, HostAccess(("/srv/data",)))) is not allowed
        assert host_path_refusal(path, HostAccess())

    def test_the_edges_own_files_are_closed_even_then(self, tmp_path: Path) -> None:
        own = tmp_path / "edges" / "florin"
        own.mkdir(parents=True)
        (tmp_path / "alias").symlink_to(tmp_path)
        for prefix in (tmp_path, tmp_path / "alias"):
            access = HostAccess((str(prefix),), private=(str(own),))
            for path in (prefix, prefix / "edges", prefix / "edges/florin/pki"):
                assert "own files" in host_path_refusal(str(path), access)
            assert host_path_refusal(str(prefix / "edges/guilder"), access) == ""

    def test_they_are_checked_by_type(self, tmp_path: Path) -> None:
        access = HostAccess((str(tmp_path),))

        def of(kind: str, name: str) -> Path:
            found = set_up(tmp_path / "pod", host_path(tmp_path / name, kind), sources(access))
            return found.root / found.inside

        assert of("DirectoryOrCreate", "made/deep").is_dir()
        assert of("FileOrCreate", "file").is_file()
        with pytest.raises(MountFailed, match="hostPath type check failed"):
            of("Directory", "file")
        with pytest.raises(MountFailed, match="hostPath type check failed"):
            of("FileOrCreate", "made")
        with pytest.raises(MountFailed, match="No such file"):
            of("", "absent")

    @pytest.mark.parametrize("kind", ["", "Directory", "DirectoryOrCreate", "FileOrCreate"])
    @pytest.mark.parametrize("target", ["/etc", "..", "../outside", "/proc/self/root", "inner"])
    def test_links_below_the_folder_are_refused(
        self, tmp_path: Path, kind: str, target: str
    ) -> None:
        allowed, outside = tmp_path / "allowed", tmp_path / "outside"
        (allowed / "inner").mkdir(parents=True)
        outside.mkdir()
        (allowed / "link").symlink_to(target)
        access = HostAccess((str(allowed),))
        for path in (allowed / "link", allowed / "link" / "x"):
            with pytest.raises(MountFailed, match=r"refused|type check"):
                set_up(tmp_path / "pod", host_path(path, kind), sources(access))
        assert os.listdir(outside) == []
        assert not (allowed / "inner" / "x").exists()

    def test_nothing_is_made_outside_an_allowed_folder(self, tmp_path: Path) -> None:
        volume = host_path(tmp_path / "new", "DirectoryOrCreate")
        with pytest.raises(MountFailed, match="is not below a folder that this edge allows"):
            set_up(tmp_path, volume, sources(HostAccess(("/srv/data",))))
        assert not (tmp_path / "new").exists()


class TestGroups:
    def test_the_group_and_the_only_user_come_from_the_pod(self) -> None:
        security = {"fsGroup": 7, "runAsUser": 5}
        pod = {"spec": {"securityContext": security, "containers": [{"name": "a"}]}}
        assert (file_group(pod), common_user(pod)) == (7, 5)
        other = {"name": "b", "securityContext": {"runAsUser": 6}}
        two = {"spec": {"securityContext": security, "containers": [{"name": "a"}, other]}}
        assert common_user(two) is None
        assert (file_group(POD), common_user(POD)) == (None, None)

    def test_it_is_about_volumes_that_pods_write_to(self) -> None:
        assert takes_group({"name": "v", "emptyDir": {}})
        assert takes_group({"name": "v", "persistentVolumeClaim": {"claimName": "c"}})
        assert not takes_group({"name": "v", "secret": {"secretName": "s"}})
        assert not takes_group(host_path("/srv"))

    @as_root
    def test_everything_is_given_and_links_are_not_followed(self, tmp_path: Path) -> None:
        volume, outside = tmp_path / "volume", tmp_path / "outside"
        (volume / "deep").mkdir(parents=True)
        (volume / "deep" / "program").write_text("x")
        (volume / "deep" / "program").chmod(0o4711)
        outside.mkdir()
        (outside / "file").write_text("x")
        (volume / "file").symlink_to(outside / "file")
        (volume / "folder").symlink_to(outside)
        before = [(p, p.stat().st_gid, p.stat().st_mode) for p in (outside, outside / "file")]
        assert not belongs_to(volume, 4242)
        give_to_group(volume, 4242)
        assert belongs_to(volume, 4242)
        program = (volume / "deep" / "program").stat()
        assert (program.st_gid, stat.S_IMODE(program.st_mode)) == (4242, 0o771)
        assert stat.S_IMODE((volume / "deep").stat().st_mode) == 0o2775
        assert [(p, p.stat().st_gid, p.stat().st_mode) for p in (outside, outside / "file")] == (
            before
        )

    def test_a_volume_that_is_a_link_is_not_given(self, tmp_path: Path) -> None:
        (tmp_path / "volume").symlink_to("/")
        with pytest.raises(OSError, match="volume"):
            give_to_group(tmp_path / "volume", os.getegid())


def test_an_expression_must_know_every_variable() -> None:
    assert expanded_strictly("$(A)/x-$$(B)", {"A": "1"}) == "1/x-$(B)"
    with pytest.raises(ConfigurationMissing, match='missing value for "B"'):
        expanded_strictly("$(A)/$(B)", {"A": "1"})
