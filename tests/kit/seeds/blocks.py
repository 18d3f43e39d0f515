"""Command blocks of the documents the project began with, as they are printed there.

What starts a controller is not here: tests start our own in its place, in the background. Where a
document names a made-up mailbox workspace, tests put the one at hand in its place.
"""

from __future__ import annotations

# The edge scheduler's page of February 2023, with root:edge as provider.
FEBRUARY_PROVIDER = [
    "kubectl ws root\nkubectl ws create edge --enter",
    "kubectl apply -f config/crds/ -f config/exports/",
]
FEBRUARY_WORKLOAD = [
    "kubectl ws \\~",
    "kubectl apply -f config/imports/\nkubectl apply -f config/samples/edgeplacement_test-1.yaml",
    "kubectl ws root:edge",
]
FEBRUARY_EDIT = "kubectl ws \\~\nkubectl edit edgeplacement test-1"
FEBRUARY_DELETE = "kubectl delete edgeplacement test-1"

# The scheduler's page of June 2023; what it includes from elsewhere comes first.
JUNE_INCLUDED = [
    "kubectl ws root\nkubectl ws create espw --enter",
    "kubectl apply -f config/crds\nkubectl apply -f config/exports",
    "kubectl ws \\~\nkubectl apply -f config/imports",
    "kubectl ws root:espw",
]
JUNE_INVENTORY = [
    "kubectl ws root:compute",
    """kubectl create -f config/samples/location_prod.yaml
kubectl create -f config/samples/location_dev.yaml
kubectl create -f config/samples/synctarget_prod.yaml
kubectl create -f config/samples/synctarget_dev.yaml
sleep 5""",
    "kubectl get locations,synctargets",
]
JUNE_ALL2ALL = [
    "kubectl ws \\~\nkubectl create -f config/samples/edgeplacement_all2all.yaml\nsleep 3",
    "kubectl get sps all2all -oyaml",
]
JUNE_DEV = [
    "kubectl create -f config/samples/edgeplacement_dev.yaml\nsleep 3",
    "kubectl get sps dev -oyaml",
]

# The edge scheduler's page of January 2023, with root as provider.
JANUARY = [
    "kubectl ws root",
    "kubectl create -f config/crds",
    "kubectl create -f config/exports",
    "kubectl ws \\~",
    "kubectl create -f config/imports",
    "kubectl create -f config/samples/test-placement-1.yaml",
    "kubectl ws root",
]

# The example scenario of the first quarter of 2023.
FLORIN_CONFIG = """kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  extraPortMappings:
  - containerPort: 8081
    hostPort: 8081
"""
GUILDER_CONFIG = """kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  extraPortMappings:
  - containerPort: 8081
    hostPort: 8083
  - containerPort: 8082
    hostPort: 8082
"""
CREATE_EDGES = """skerry edge create florin --config florin-config.yaml
skerry edge create guilder --config guilder-config.yaml"""

_SYNC_TARGET = """kubectl apply -f - <<EOF
apiVersion: workload.kcp.io/v1alpha1
kind: SyncTarget
metadata:
  name: sync-target-{letter}
  labels:
    example: si
    extended: {extended}
spec:
  cells:
    {cell}
EOF"""
_LOCATION = """kubectl apply -f - <<EOF
apiVersion: scheduling.kcp.io/v1alpha1
kind: Location
metadata:
  name: location-{letter}
  labels:
    env: prod{label}
spec:
  resource: {{group: workload.kcp.io, version: v1alpha1, resource: synctargets}}
  instanceSelector:
    matchLabels: {{"example":"si", "extended":"{extended}"}}
EOF"""
STAGE_1 = [
    "kubectl ws root\nkubectl ws create imw-1 --enter",
    _SYNC_TARGET.format(letter="f", extended="non", cell="foo: bar"),
    _LOCATION.format(letter="f", extended="non", label=""),
    "kubectl delete locations default",
    _SYNC_TARGET.format(letter="g", extended="si", cell="bar: baz"),
    _LOCATION.format(letter="g", extended="si", label="\n    extended: si"),
    "kubectl ws root\nkubectl ws create espw --enter",
    "kubectl create -f config/crds\nkubectl create -f config/exports",
]

_BIND_KUBE = """kubectl apply -f - <<EOF
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata:
  name: bind-kube
spec:
  reference:
    export:
      path: "root:compute"
      name: kubernetes
EOF"""
_BIND_ESPW = """kubectl apply -f - <<EOF
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata:
  name: bind-espw
spec:
  reference:
    export:
      path: root:espw
      name: edge.kcp.io
EOF"""
_WORKLOAD = """kubectl apply -f - <<EOF
apiVersion: v1
kind: Namespace
metadata:
  name: {word}stuff
  labels: {{{word}: "si"}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  namespace: {word}stuff
  name: httpd-htdocs
data:
  index.html: |
    <!DOCTYPE html>
    <html>
      <body>
        This is a {word} web site.
      </body>
    </html>
---
apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: {word}stuff
  name: {word}d
spec:
  selector: {{matchLabels: {{app: {word}}} }}
  template:
    metadata:
      labels: {{app: {word}}}
    spec:
      containers:
      - name: httpd
        image: library/httpd:2.4
        ports:
        - name: http
          containerPort: 80
          hostPort: {port}
          protocol: TCP
        volumeMounts:
        - name: htdocs
          readOnly: true
          mountPath: /usr/local/apache2/htdocs
      volumes:
      - name: htdocs
        configMap:
          name: httpd-htdocs
          optional: false
EOF"""
_PLACEMENT = """kubectl apply -f - <<EOF
apiVersion: edge.kcp.io/v1alpha1
kind: EdgePlacement
metadata:
  name: edge-placement-{letter}
spec:
  locationSelectors:
  - matchLabels: {where}
  namespaceSelector:
    matchLabels: {{"{word}":"si"}}
  nonNamespacedObjects:
  - apiGroup: apis.kcp.io
    resources: [ "apibindings" ]
    resourceNames: [ "bind-kube" ]
  upsync:
  - apiGroup: "group1.test"
    resources: ["sprockets", "flanges"]
    namespaces: ["orbital"]
    names: ["george", "cosmo"]
  - apiGroup: "{group}"
    resources: ["{resource}"]
    names: ["{name}"]
EOF"""
STAGE_2 = [
    "kubectl ws root\nkubectl ws create my-org --enter\nkubectl ws create wmw-c --enter",
    _BIND_KUBE,
    _WORKLOAD.format(word="common", port=8081),
    _BIND_ESPW,
    _PLACEMENT.format(letter="c", word="common", where='{"env":"prod"}', group="group2.test",
                      resource="cogs", name="William"),
    "kubectl ws root:my-org\nkubectl ws create wmw-s --enter",
    _BIND_KUBE,
    _WORKLOAD.format(word="special", port=8082),
    _BIND_ESPW,
    _PLACEMENT.format(letter="s", word="special", where='{"env":"prod","extended":"si"}',
                      group="group3.test", resource="widgets", name="*"),
]  # fmt: skip
STAGE_2_LOOK = "kubectl ws root:my-org:wmw-c\nkubectl get SinglePlacementSlice -o yaml"
STAGE_2_LOOK_AT_SPECIAL = STAGE_2_LOOK.replace("wmw-c", "wmw-s")

# Their first lines go to the mailbox of florin, and of guilder by way of its parent.
STAGE_3_FLORIN = [
    "kubectl ws {mailbox}",
    "kubectl get SyncerConfig the-one -o yaml",
    "kubectl get ns",
    "kubectl get deployments -A",
]
STAGE_3_GUILDER = ["kubectl ws root:espw", "kubectl ws {mailbox}", "kubectl get deployments -A"]

STAGE_4_FLORIN = [
    "kubectl get --context kind-florin ns | grep stuff",
    "kubectl get --context kind-florin Deployment -n commonstuff",
]
STAGE_4_GUILDER = [
    "kubectl get --context kind-guilder ns | grep stuff",
    "kubectl get --context kind-guilder Deployment -A | grep stuff",
]
