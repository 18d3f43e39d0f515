"""What pods of a node refer to, from caches: configuration, Services, claims, tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.edge.agent.host_access import HostAccess, host_path_volume
from skerry.edge.agent.runtime import Volume
from skerry.edge.agent.volumes import MountFailed
from skerry.kit.log import Logger
from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.workloads.local_volumes import provisioned_name, provisioned_path
from skerry.runtime.client import Client
from skerry.runtime.index import Key, by_namespace
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.transport import TransportError

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
SERVICES = GroupVersionResource("", "v1", "services")
CLAIMS = GroupVersionResource("", "v1", "persistentvolumeclaims")
VOLUMES = GroupVersionResource("", "v1", "persistentvolumes")
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")

_IN_NAMESPACE = "namespace"
# A token is renewed once four fifths of its life have passed, as kubelet does.
_RENEWED_AT = 0.8

_log = Logger("agent")

Place = tuple[str, int]


@dataclass(slots=True)
class _Token:
    text: str
    renewed_at: datetime


class PodSources:
    """Caches shared by the agents of one edge."""

    def __init__(
        self, client: Client, factory: InformerFactory, volumes: Path | None = None
    ) -> None:
        """*volumes* is where the edge makes the directories of claims."""
        self._client = client
        self._volumes_root = volumes
        # Packed: nobody reads most of them, and a decoded dict costs five times its bytes.
        self.config_maps = factory.informer(CONFIG_MAPS, packed=True)
        self.secrets = factory.informer(SECRETS, packed=True)
        self.services = factory.informer(SERVICES)
        self.claims = factory.informer(CLAIMS)
        self.volumes = factory.informer(VOLUMES)
        self.services.index.add_index(_IN_NAMESPACE, by_namespace)
        self._tokens: dict[tuple[str, str, int], _Token] = {}
        # How pods reach Services; whoever forwards to them sets both.
        self.reached_at: Callable[[Object, Object], Place | None] = lambda service, port: None
        self.proxy_url: Callable[[str], str] = lambda namespace: ""

    @property
    def informers(self) -> list[Informer]:
        """Everything that must be known before pods are started."""
        return [self.config_maps, self.secrets, self.services, self.claims, self.volumes]

    def configuration(self, namespace: str, kind: str, name: str) -> Object | None:
        """Return a ConfigMap or Secret."""
        informer = self.config_maps if kind == "configmap" else self.secrets
        return informer.index.get(Key("", namespace, name))

    def services_for(self, namespace: str) -> list[Object]:
        """Return the Services in a pod's environment: its namespace's, and the API server's."""
        found = list(self.services.index.by(_IN_NAMESPACE, ("", namespace)))
        if namespace != "default":
            kubernetes = self.services.index.get(Key("", "default", "kubernetes"))
            found += [] if kubernetes is None else [kubernetes]
        return found

    def claim_volume(self, namespace: str, name: str, access: HostAccess) -> Volume:
        """Return the volume of a claim; raises ``MountFailed``, ``HostPathRefused``, ``OSError``.

        What the edge provisioned is the claim's own directory; any other volume is a path of the
        machine like one that a pod names itself.
        """
        claim = self.claims.index.get(Key("", namespace, name))
        if claim is None:
            raise MountFailed(f'persistentvolumeclaim "{name}" not found')
        bound = claim["spec"].get("volumeName")
        volume = self.volumes.index.get(Key("", "", bound)) if bound else None
        if volume is None or (claim.get("status") or {}).get("phase") != "Bound":
            raise MountFailed(f'pod has unbound immediate PersistentVolumeClaims: "{name}"')
        spec = volume["spec"]
        if (spec.get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
            raise MountFailed(f'volume "{bound}" is not bound to persistentvolumeclaim "{name}"')
        source = spec.get("hostPath") or spec.get("local")
        if source is None:
            raise MountFailed(f'volume "{bound}" is of a kind this node cannot mount')
        if own := self._provisioned(claim, volume):
            return own
        kind = "" if "local" in spec else str(source.get("type") or "")
        return host_path_volume({"path": source["path"], "type": kind}, access)

    def _provisioned(self, claim: Object, volume: Object) -> Volume | None:
        """Return the directory the edge made for a claim; None for a volume that is not its own.

        By the claim's uid, which nobody chooses: a volume that somebody wrote by hand and bound to
        a claim leads to that claim's directory or is no volume of ours.
        """
        path = provisioned_path(str(self._volumes_root), claim)
        named = (volume["spec"].get("hostPath") or {}).get("path")
        is_own = volume["metadata"]["name"] == provisioned_name(claim) and named == path
        if self._volumes_root is None or not is_own:
            return None
        directory = Path(path)
        if not directory.is_dir():
            directory.mkdir(mode=0o777, parents=True)
            directory.chmod(0o777)
        return Volume(directory)

    def token(self, pod: Object, source: Object) -> str | None:
        """Return a token that was fetched before; see ``fetch_tokens``."""
        found = self._tokens.get(_token_key(pod, source))
        return None if found is None else found.text

    async def fetch_tokens(self, pod: Object) -> None:
        """Have every token the pod's volumes ask for, renewed when due.

        One that cannot be had now leaves the volume waiting, and is asked for again then.
        """
        now = self._client.clock.now()
        for source in _token_sources(pod):
            known = self._tokens.get(_token_key(pod, source))
            if known is not None and known.renewed_at > now:
                continue
            try:
                self._tokens[_token_key(pod, source)] = await self._issued(pod, source, now)
            except (ApiError, TransportError) as error:
                _log.warning("token not issued", pod=pod["metadata"]["name"], error=error)

    def forget_tokens(self, uid: str) -> None:
        """Forget the tokens of a pod that has gone."""
        for key in [key for key in self._tokens if key[0] == uid]:
            del self._tokens[key]

    async def _issued(self, pod: Object, source: Object, now: datetime) -> _Token:
        metadata = pod["metadata"]
        seconds = int(source.get("expirationSeconds") or 3600)
        bound = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        spec: Object = {"expirationSeconds": seconds, "boundObjectRef": bound}
        if source.get("audience"):
            spec["audiences"] = [source["audience"]]
        answer = await self._client.create(
            ACCOUNTS,
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
            metadata["namespace"],
            name=pod["spec"].get("serviceAccountName") or "default",
            subresource="token",
        )
        ends = parse_rfc3339(answer["status"]["expirationTimestamp"])
        life = (ends - now).total_seconds()
        return _Token(answer["status"]["token"], now + timedelta(seconds=life * _RENEWED_AT))


def _token_sources(pod: Object) -> list[Object]:
    return [
        part["serviceAccountToken"]
        for volume in pod["spec"].get("volumes") or ()
        for part in (volume.get("projected") or {}).get("sources") or ()
        if "serviceAccountToken" in part
    ]


def _token_key(pod: Object, source: Object) -> tuple[str, str, int]:
    seconds = int(source.get("expirationSeconds") or 3600)
    return (pod["metadata"]["uid"], str(source.get("audience") or ""), seconds)


def refers_to(pod: Object, kind: str, name: str) -> bool:
    """Tell whether a pod mentions a ConfigMap or Secret anywhere; may say yes too often."""
    key = "configMap" if kind == "configmap" else "secret"
    return _mentions(pod["spec"], key, name)


def _mentions(value: object, key: str, name: str) -> bool:
    if isinstance(value, dict):
        for field, inner in value.items():
            named = field.startswith(key) and isinstance(inner, dict)
            if named and name in (inner.get("name"), inner.get("secretName")):
                return True
            if _mentions(inner, key, name):
                return True
    elif isinstance(value, list):
        return any(_mentions(item, key, name) for item in value)
    return False
