"""Command blocks of the walkthroughs people follow, and what they show, as data.

A block is a list of commands exactly as printed; what needs an edge controller (reading the
slices and mailboxes it writes) is left to the tests of those controllers, and so are the commands
that start one.
"""

from __future__ import annotations

EDGE_SCHEDULER_FEBRUARY = [
    "kubectl ws root\nkubectl ws create edge --enter",
    "kubectl apply -f config/crds/ -f config/exports/",
    "kubectl ws \\~",
    "kubectl apply -f config/imports/\nkubectl apply -f config/samples/edgeplacement_test-1.yaml",
    "kubectl ws root:edge",
    (
        "kubectl ws \\~\nEDITOR='touch' kubectl edit edgeplacement test-1\n"
        "kubectl delete edgeplacement test-1"
    ),
]

SCHEDULER_JUNE_PROVIDER = [
    "kubectl ws root\nkubectl ws create espw --enter",
    "kubectl create -f config/crds -f config/exports",
    "kubectl ws \\~",
    "kubectl apply -f config/imports",
]
SCHEDULER_JUNE = [
    "kubectl ws root:compute",
    """kubectl create -f config/samples/location_prod.yaml
kubectl create -f config/samples/location_dev.yaml
kubectl create -f config/samples/synctarget_prod.yaml
kubectl create -f config/samples/synctarget_dev.yaml""",
    "kubectl get locations,synctargets",
    "kubectl ws \\~\nkubectl create -f config/samples/edgeplacement_all2all.yaml",
    "kubectl create -f config/samples/edgeplacement_dev.yaml",
]
LOCATIONS_AND_TARGETS = """\
NAME                                 RESOURCE      AVAILABLE   INSTANCES   LABELS   AGE
location.scheduling.kcp.io/default   synctargets   0           2                    AGE
location.scheduling.kcp.io/dev       synctargets   0           1                    AGE
location.scheduling.kcp.io/prod      synctargets   0           1                    AGE

NAME                              AGE
synctarget.workload.kcp.io/dev    AGE
synctarget.workload.kcp.io/prod   AGE
"""

EDGE_SCHEDULER_JANUARY = [
    "kubectl ws root",
    "kubectl create -f config/crds",
    "kubectl create -f config/exports",
    "kubectl ws \\~",
    "kubectl create -f config/imports",
    "kubectl create -f config/samples/test-placement-1.yaml",
    "kubectl ws root",
]

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
