"""An edge joins by a key of its own, is approved, renews, lapses, is revoked and comes back.

``SKERRY_E2E_EDGE=KUBECONFIG`` runs this against a cluster of yours as the edge, as the other tests
of this folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from skerry.api.edge import SYNCER_CONFIGS
from skerry.api.edge_identity import REQUESTS, account_name, certificate_request
from skerry.api.errors import Forbidden, Unauthorized
from skerry.api.kinds import GroupVersionResource
from skerry.app.edge_identity import (
    CredentialTerms,
    apply_object,
    manifest,
    open_hub,
)
from skerry.app.hub_credential import IDENTITY_FILE
from skerry.edge.syncer.identity.keys import make_key
from skerry.logic.fleet.syncing.certificates import EdgeIdentity, decode_identity
from skerry.logic.fleet.syncing.manifest import hub_kubeconfig, identity_secret_name, syncer_id
from skerry.runtime.client import Client
from skerry.runtime.discovery import Mapper
from skerry.runtime.kubeconfig import connect, load
from tests.kit.e2e.edges import ForeignEdge
from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.places import (
    ALICE_TOKEN,
    CONFIG_MAPS,
    ESPW,
    IMW,
    NAMESPACES,
    Places,
    SyncerProcess,
    until,
)

ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
SECRETS = GroupVersionResource("", "v1", "secrets")
ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")
BINDINGS = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
_BIN = Path(sys.executable).parent
# Short enough for three renewals in a test, long enough that a busy machine renews in time.
LIFETIME_SECONDS = 6
# What lets somebody approve and revoke the edges of one inventory workspace, and nothing else.
GATEKEEPER = [
    {"nonResourceURLs": ["/"], "verbs": ["access"]},
    {"apiGroups": ["workload.kcp.io"], "resources": ["synctargets"], "verbs": ["get", "list"]},
    {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["signers"],
        "resourceNames": ["edge.kcp.io/edge-client"],
        "verbs": ["approve"],
    },
]


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub whose certificates live for seconds."""
    flags = ("--init", "--edge-certificate-lifetime", f"{LIFETIME_SECONDS}s")
    process = Hub(tmp_path_factory.mktemp("hasty"), *flags).start()
    yield process
    process.stop(signal.SIGKILL)


def run(
    *words: str, kubeconfig: Path, code: int = 0, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as the hub's administrator, or as nobody at the edge."""
    done = subprocess.run(
        [str(_BIN / words[0]) if (_BIN / words[0]).exists() else words[0], *words[1:]],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


class Joining(Places):
    """Places whose edge has not begun."""

    @property
    def identity_file(self) -> Path:
        return self.directory / "syncer" / IDENTITY_FILE

    @property
    def identity(self) -> EdgeIdentity:
        return decode_identity(self.identity_file.read_bytes())

    def admin(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a ``skerry edge`` command for this edge at the hub."""
        flags = ("--imw", IMW, "--context", "base")
        return run("skerry", "edge", *words, *flags, kubeconfig=self.hub.kubeconfig, code=code)

    def waiting_keys(self) -> list[dict[str, str]]:
        """Return what ``skerry edge approve --list`` says of this edge."""
        found: list[dict[str, str]] = json.loads(
            self.admin("approve", "--list", "-o", "json").stdout
        )["keys"]
        return [key for key in found if key["edge"] == self.name]

    def waiting_key(self) -> dict[str, str]:
        (key,) = self.waiting_keys()
        assert self.name in self.admin("approve", "--list", self.name).stdout
        return key

    def inside(self) -> Path:
        """Return a kubeconfig of the hub's administrator for the mailbox."""
        config = yaml.safe_load(self.hub.kubeconfig.read_text())
        for cluster in config["clusters"]:
            cluster["cluster"]["server"] = f"{self.hub.url}/clusters/{self.mailbox}"
        path = self.directory / "mailbox.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def joins(
        self, *flags: str, code: int = 0, folder: str = "syncer"
    ) -> subprocess.CompletedProcess[str]:
        """Run ``skerry edge join`` at the edge."""
        return run(
            "skerry", "edge", "join", self.name, "--from-kubeconfig", str(self.hub_kubeconfig),
            "--data-dir", str(self.directory / folder), *flags,
            kubeconfig=Path("/nonexistent"), code=code,
        )  # fmt: skip

    @asynccontextmanager
    async def prepared(self, terms: CredentialTerms | None = None) -> AsyncIterator[Joining]:
        """Have a mailbox and a bootstrap credential; the syncer is not started."""
        self._terms = terms or CredentialTerms()
        async with self.running():
            await self.configure()
            yield self

    async def bootstrap(self, terms: CredentialTerms | None = None) -> None:
        await super().bootstrap(terms or self._terms)

    async def started(self, *flags: str) -> None:
        self.syncer = SyncerProcess(
            self.directory,
            self.hub_kubeconfig,
            self.edge.kubeconfig,
            "--heartbeat-seconds",
            "1",
            *flags,
            sync_target=self.name,
        )
        await asyncio.to_thread(self.syncer.start)

    async def delivered(self, name: str) -> None:
        await self.put(CONFIG_MAPS, name, {"data": {"a": name}})
        await self.arrives(CONFIG_MAPS, name)

    async def certified(self, after: str = "") -> EdgeIdentity:
        """Wait for a certificate other than *after*."""
        async with asyncio.timeout(60):
            while True:
                if self.identity_file.exists():
                    found = self.identity
                    if found.certificate not in ("", after):
                        return found
                await asyncio.sleep(0.1)

    async def logged(self, text: str) -> str:
        """Wait for a line of the syncer's log."""
        async with asyncio.timeout(60):
            while True:
                for line in self.syncer.log_file.read_text().splitlines():
                    if text in line:
                        return line
                await asyncio.sleep(0.1)

    def as_edge(self, identity: EdgeIdentity | None = None) -> Client:
        """Return a client with the certificate of the edge."""
        shown = identity or self.identity
        config = load([self.hub_kubeconfig])
        return Client(
            connect(
                replace(
                    config, token="", certificate=shown.certificate.encode(), key=shown.key.encode()
                )
            )
        )


async def test_a_person_approves_the_key_that_the_edge_shows_revokes_it_and_lets_another_in(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Joining(tmp_path, hub, edge).prepared(CredentialTerms(approved=False)) as places:
        await places.put(CONFIG_MAPS, "page", {"data": {"a": "1"}})
        await places.started()
        line = await places.logged("waiting for approval")
        assert f"skerry edge approve {places.name}" in line
        key = places.waiting_key()
        assert key["fingerprint"] in line
        wrong = "0" if key["fingerprint"][0] != "0" else "1"
        said = places.admin("approve", places.name, "--key", wrong, code=6).stderr
        assert key["fingerprint"] in said
        said = places.admin("approve", places.name, "--key", key["fingerprint"][:6]).stdout
        assert f"edge {places.name} approved" in said
        await places.arrives(CONFIG_MAPS, "page")
        assert "No key waits" in places.admin("approve", "--list", places.name).stdout
        assert stat.S_IMODE(places.identity_file.stat().st_mode) == 0o600
        assert stat.S_IMODE(places.identity_file.parent.stat().st_mode) == 0o700

        # Somebody has copied the key.
        stolen = places.identity
        thief = places.as_edge(stolen)
        await thief.list(SYNCER_CONFIGS)
        assert f"edge {places.name} revoked" in places.admin("revoke", places.name).stdout
        with pytest.raises(Unauthorized):
            await thief.list(SYNCER_CONFIGS)
        await places.logged("the hub refuses this edge")
        await places.put(CONFIG_MAPS, "later", {"data": {"a": "1"}})
        assert await places.names_at_edge(CONFIG_MAPS) == {"page"}, "what runs stays"

        # The syncer that still runs takes up the new credential, and shows a new key.
        bootstrap = ("bootstrap", places.name, "--require-approval")
        places.admin(*bootstrap, "-o", str(places.hub_kubeconfig))
        async with asyncio.timeout(60):
            while not (waiting := places.waiting_keys()):
                await asyncio.sleep(0.2)
        run("kubectl", "certificate", "approve", waiting[0]["request"], kubeconfig=places.inside())
        await places.arrives(CONFIG_MAPS, "later")
        assert places.identity.key != stolen.key
        with pytest.raises(Unauthorized):
            await thief.list(SYNCER_CONFIGS)
        await thief.transport.close()


async def test_whoever_may_approve_in_the_inventory_workspace_lets_edges_in_and_shuts_them_out(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Joining(tmp_path, hub, edge).prepared(CredentialTerms(approved=False)) as places:
        inventory = places.access.at(IMW)
        config = yaml.safe_load(places.hub.kubeconfig.read_text())
        for user in config["users"]:
            user["user"] = {"token": ALICE_TOKEN}
        alice = tmp_path / "alice.kubeconfig"
        alice.write_text(yaml.safe_dump(config))
        begin = ("skerry", "edge")
        flags = ("--imw", IMW, "--context", "base")
        run(*begin, "approve", places.name, *flags, kubeconfig=alice, code=1)
        await inventory.create(ROLES, {"metadata": {"name": "gatekeeper"}, "rules": GATEKEEPER})
        binding = {
            "metadata": {"name": "gatekeeper"},
            "roleRef": {"apiGroup": ROLES.group, "kind": "ClusterRole", "name": "gatekeeper"},
            "subjects": [{"apiGroup": ROLES.group, "kind": "User", "name": "alice"}],
        }
        await inventory.create(BINDINGS, binding)
        await asyncio.gather(
            asyncio.to_thread(places.joins),
            asyncio.to_thread(run, *begin, "approve", places.name, *flags, kubeconfig=alice),
        )
        run(*begin, "approve", "--list", *flags, kubeconfig=alice)
        run(*begin, "revoke", places.name, *flags, kubeconfig=alice)
        # That is all: she can make no credential that needs no approval of hers, nor read.
        run(*begin, "bootstrap", places.name, *flags, kubeconfig=alice, code=1)
        refused = places.as_edge()
        with pytest.raises(Unauthorized):
            await refused.list(SYNCER_CONFIGS)
        await refused.transport.close()


async def test_a_credential_is_for_its_first_key_alone_and_a_retry_with_it_succeeds(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Joining(tmp_path, hub, edge).prepared() as places:
        token = load([places.hub_kubeconfig]).token
        pending = await make_key(places.edge_name, f"bootstrap:{token.split('.')[1]}")
        bearer = Client(connect(load([places.hub_kubeconfig])))
        # The answer to this is lost with the power.
        await bearer.create(REQUESTS, certificate_request(pending.name, pending.request.encode()))
        await bearer.transport.close()
        places.identity_file.parent.mkdir(mode=0o700)
        places.identity_file.write_bytes(EdgeIdentity(pending=(pending,)).encode())
        said = places.joins("-o", "json").stdout
        assert json.loads(said)["mailbox"] == places.mailbox
        assert places.identity.key == pending.key
        # A thief with the same credential has another key.
        assert "refuses the bootstrap credential" in places.joins(folder="thief", code=1).stderr
        # Again: nothing is asked for.
        first = places.identity
        assert "has joined" in places.joins().stdout
        assert places.identity == first


async def test_an_expired_credential_is_refused_and_a_new_one_helps(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Joining(tmp_path, hub, edge).prepared(
        CredentialTerms(lifetime=timedelta(seconds=1))
    ) as places:
        await asyncio.sleep(2.1)
        said = places.joins(code=1).stderr
        assert f"skerry edge bootstrap {places.name}" in said
        await places.bootstrap(CredentialTerms())
        places.joins()


# What anybody might try with a bootstrap credential in its own mailbox and elsewhere.
_ATTEMPTS: list[tuple[str, str, Mapping[str, Any] | None]] = [
    ("GET", "/api", None),
    ("GET", "/apis", None),
    ("GET", "/version", None),
    ("GET", "/extensions", None),
    ("GET", "/metrics", None),
    ("GET", "/api/v1/namespaces", None),
    ("GET", "/api/v1/secrets", None),
    ("GET", "/api/v1/namespaces/default/secrets", None),
    ("GET", "/api/v1/namespaces/default/configmaps", None),
    ("GET", "/apis/edge.kcp.io/v1alpha1/syncerconfigs", None),
    ("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests", None),
    ("GET", "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster", None),
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "evil"}}),
    ("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "evil"}}),
    ("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "evil"}}),
    ("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "evil"}}),
    ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}}),
    ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "evil"}}),
    ("POST", "/apis/tenancy.kcp.io/v1alpha1/workspaces", {"metadata": {"name": "evil"}}),
    ("POST", "/apis/apis.kcp.io/v1alpha1/apibindings", {"metadata": {"name": "evil"}}),
    ("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "x"}}),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}),
    ("POST", "/extensions/v1/watch", {"watches": []}),
    ("POST", "/extensions/v1/batch", {"requests": []}),
    ("DELETE", "/api/v1/namespaces/default", None),
]


async def test_a_bootstrap_credential_can_do_nothing_else(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Joining(tmp_path, hub, edge).prepared(CredentialTerms(approved=False)) as places:
        config = load([places.hub_kubeconfig])
        base = config.server.partition("/clusters/")[0]
        bearer = connect(replace(config, server=base))
        where = [f"/clusters/{places.mailbox}", "", "/clusters/root", f"/clusters/{ESPW}",
                 f"/clusters/{IMW}", "/clusters/*"]  # fmt: skip
        before = await places.in_mailbox.list(SECRETS)
        for redeemed in (False, True):
            for prefix in where:
                for method, path, body in _ATTEMPTS:
                    text = b"" if body is None else json.dumps(body).encode()
                    headers = {"content-type": "application/json"}
                    answer = await bearer.request(method, prefix + path, "", headers, text)
                    assert answer.status in (401, 403, 404), (redeemed, method, prefix + path)
            if not redeemed:
                own = await make_key(places.edge_name, "x")
                mine = Client(bearer, cluster=places.mailbox)
                body = certificate_request(own.name, own.request.encode())
                request = await mine.create(REQUESTS, body)
        name = own.name
        assert await mine.get(REQUESTS, name)
        approval = {**request, "status": {"conditions": [{"type": "Approved", "status": "True"}]}}
        for subresource in ("approval", "status"):
            with pytest.raises((Forbidden, Unauthorized)):
                await mine.update(REQUESTS, approval, subresource=subresource)
        with pytest.raises((Forbidden, Unauthorized)):
            await mine.delete(REQUESTS, name)
        other = await make_key(places.edge_name, "x")
        with pytest.raises((Forbidden, Unauthorized)):
            await mine.create(REQUESTS, certificate_request(other.name, other.request.encode()))
        after = await places.in_mailbox.list(SECRETS)
        assert len(after.items) == len(before.items)
        # The Secret behind it does not contain it.
        assert config.token.rpartition(".")[2] not in json.dumps(after.items)
        await bearer.close()


async def test_certificates_rotate_while_objects_flow_and_a_lapsed_one_comes_back(
    tmp_path: Path, hasty: Hub, edge: ForeignEdge
) -> None:
    async with Joining(tmp_path, hasty, edge).prepared() as places:
        await places.started()
        seen = [await places.certified()]
        number = 0
        while len(seen) < 3:
            number += 1
            await places.delivered(f"page-{number}")
            found = places.identity
            if found.certificate != seen[-1].certificate:
                seen.append(found)
        assert len({each.key for each in seen}) == len(seen), "each certificate has its own key"
        log = places.syncer.log_file.read_text()
        assert "refuses" not in log
        # The edge is away for longer than its certificate.
        assert places.syncer.stop() == 0
        last = places.identity
        await asyncio.sleep(LIFETIME_SECONDS + 1)
        lapsed = places.as_edge(last)
        for gvr in (CONFIG_MAPS, NAMESPACES, SYNCER_CONFIGS):
            with pytest.raises((Forbidden, Unauthorized)):
                await lapsed.list(gvr)
        await lapsed.transport.close()
        await places.put(CONFIG_MAPS, "late", {"data": {"a": "1"}})
        await places.started()
        await places.arrives(CONFIG_MAPS, "late")
        assert places.identity.certificate != last.certificate


async def test_a_syncer_goes_on_when_the_hub_has_changed_its_authority_for_good(
    tmp_path: Path, hasty: Hub, edge: ForeignEdge
) -> None:
    async with Joining(tmp_path, hasty, edge).prepared() as places:
        await places.started()
        await places.certified()
        await places.delivered("before")
        rotate = ("skerry", "certificates", "rotate-ca", "--data-dir", str(hasty.data_dir))
        run(*rotate, kubeconfig=hasty.kubeconfig)
        # In the overlap the edge, which was joined with the old authority, learns the new one.
        async with asyncio.timeout(60):
            while places.identity.ca.count("BEGIN CERTIFICATE") < 2:
                await asyncio.sleep(0.1)
        await places.delivered("between")
        run(*rotate, "--finish", kubeconfig=hasty.kubeconfig)
        await places.access.client.transport.close()
        places.access = open_hub([hasty.kubeconfig])
        await places.delivered("after")
        renewed = await places.certified(places.identity.certificate)
        assert "refuses" not in places.syncer.log_file.read_text()
        # Its kubeconfig still names the old authority alone; what it learned is what it trusts.
        assert places.syncer.stop() == 0
        await places.started()
        await places.delivered("again")
        await places.certified(renewed.certificate)
        # What it learns of authorities comes with a certificate, and the next may be a moment old.
        async with asyncio.timeout(60):
            while places.identity.ca.count("BEGIN CERTIFICATE") != 1:
                await asyncio.sleep(0.1)


async def test_an_edge_of_the_previous_version_gets_a_certificate_without_a_restart(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Joining(tmp_path, hub, edge).prepared() as places:
        await places.bootstrap_account()
        await places.put(CONFIG_MAPS, "page", {"data": {"a": "1"}})
        await places.started()
        await places.arrives(CONFIG_MAPS, "page")
        await places.certified()
        await places.delivered("next")
        # The account has done its work.
        name = account_name(places.name)
        await until(places.in_mailbox, ACCOUNTS, name, "default", lambda found: found is None)
        assert places.syncer.process is not None
        assert places.syncer.process.poll() is None
        await places.delivered("last")
        assert not (places.syncer.data_dir / "hub-token").exists()


async def test_a_pod_on_another_node_is_the_same_edge(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Joining(tmp_path, hub, edge).prepared() as places:
        name = syncer_id(places.name, places.mailbox)
        text = await manifest(
            places.access, places.name, places.mailbox, image="i", kubeconfig={"kind": "Config"}
        )
        mapper = Mapper(places.at_edge)
        for document in yaml.safe_load_all(text):
            await apply_object(places.at_edge, mapper, document)
        answer = await places.at_edge.create(
            ACCOUNTS, {"spec": {}}, name, name=name, subresource="token"
        )
        admin = load([places.edge.kubeconfig])
        config = hub_kubeconfig(admin.server, admin.ca, "syncer", answer["status"]["token"])
        own = tmp_path / "edge-syncer.kubeconfig"
        own.write_text(yaml.safe_dump(config))
        flags = ("--lock-namespace", name, "--identity-secret", identity_secret_name(name))
        kept = []
        for node in ("one", "two"):
            places.syncer = SyncerProcess(
                tmp_path / node, places.hub_kubeconfig, own, *flags, sync_target=places.name
            )
            (tmp_path / node).mkdir()
            await asyncio.to_thread(places.syncer.start)
            await places.delivered(f"from-{node}")
            places.syncer.stop()
            secret = await places.at_edge.get(SECRETS, identity_secret_name(name), name)
            kept.append(secret["data"])
            # Applying the manifest again leaves the identity as it is.
            for document in yaml.safe_load_all(text):
                await apply_object(places.at_edge, mapper, document)
        assert kept[0] == kept[1]
        assert kept[0]
