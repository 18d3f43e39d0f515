"""What the documents show, brought up to date in the places where they disagree.

The pages of January, February and June call one controller by three names and one key by two: all
are ``controller="edge-scheduler"`` here, as in the example scenario, and ``Starting`` of February
is ``starting`` as later. January's dump of a Go struct is left to a test of its own. Where the
scheduler of the scenario updated slices it had created empty, ours creates them whole. The column
LABELS, blank in June, is filled.
"""

# ruff: noqa: E501 - log lines are as long as they are
from __future__ import annotations

FEBRUARY_STARTED = """\
I0214 17:09:54.739592   50397 placement.go:207] "Found APIExport view" exportName="edge.kcp.io" serverURL="https://192.168.1.54:6443/services/apiexport/21rzp91t9ife44tq/edge.kcp.io"
I0214 17:09:54.755028   50397 controller.go:182] "queueing EdgePlacement" controller="edge-scheduler" key="kvdk2spgmbix|test-1"
I0214 17:09:54.841368   50397 controller.go:257] "starting controller" controller="edge-scheduler"
I0214 17:09:54.841492   50397 controller.go:282] "processing key" controller="edge-scheduler" key="kvdk2spgmbix|test-1"
reconciling EdgePlacement test-1 in Workspace kvdk2spgmbix
"""
FEBRUARY_EDITED = """\
I0214 17:10:12.404611   50397 controller.go:182] "queueing EdgePlacement" controller="edge-scheduler" key="kvdk2spgmbix|test-1"
I0214 17:10:12.404634   50397 controller.go:282] "processing key" controller="edge-scheduler" key="kvdk2spgmbix|test-1"
reconciling EdgePlacement test-1 in Workspace kvdk2spgmbix
"""
FEBRUARY_DELETED = """\
I0214 17:11:21.744670   50397 controller.go:182] "queueing EdgePlacement" controller="edge-scheduler" key="kvdk2spgmbix|test-1"
I0214 17:11:21.744695   50397 controller.go:282] "processing key" controller="edge-scheduler" key="kvdk2spgmbix|test-1"
I0214 17:11:21.744722   50397 controller.go:308] "object deleted before handled" controller="edge-scheduler" key="kvdk2spgmbix|test-1"
"""

JUNE_STARTED = """\
I0605 10:53:00.156100   29786 scheduler.go:212] "Found APIExport view" exportName="edge.kcp.io" serverURL="https://192.168.1.13:6443/services/apiexport/jxch2kyb3c1h6bac/edge.kcp.io"
I0605 10:53:00.157874   29786 scheduler.go:212] "Found APIExport view" exportName="scheduling.kcp.io" serverURL="https://192.168.1.13:6443/services/apiexport/root/scheduling.kcp.io"
I0605 10:53:00.159242   29786 scheduler.go:212] "Found APIExport view" exportName="workload.kcp.io" serverURL="https://192.168.1.13:6443/services/apiexport/root/workload.kcp.io"
I0605 10:53:00.261128   29786 controller.go:201] "starting controller" controller="edge-scheduler"
"""
JUNE_INVENTORY = """\
NAME                                 RESOURCE      AVAILABLE   INSTANCES   LABELS     AGE
location.scheduling.kcp.io/default   synctargets   0           2                      2m12s
location.scheduling.kcp.io/dev       synctargets   0           1           env=dev    2m39s
location.scheduling.kcp.io/prod      synctargets   0           1           env=prod   3m13s

NAME                              AGE
synctarget.workload.kcp.io/dev    110s
synctarget.workload.kcp.io/prod   2m12s
"""
JUNE_ALL2ALL = """\
apiVersion: edge.kcp.io/v1alpha1
destinations:
- cluster: 1yotsgod0d2p3xa5
  locationName: prod
  syncTargetName: prod
  syncTargetUID: 13841ffd-33f2-4cf4-9114-6156f73aa5c8
- cluster: 1yotsgod0d2p3xa5
  locationName: dev
  syncTargetName: dev
  syncTargetUID: ea5492ec-44af-4173-a4ca-9c5cd59afcb1
- cluster: 1yotsgod0d2p3xa5
  locationName: default
  syncTargetName: dev
  syncTargetUID: ea5492ec-44af-4173-a4ca-9c5cd59afcb1
- cluster: 1yotsgod0d2p3xa5
  locationName: default
  syncTargetName: prod
  syncTargetUID: 13841ffd-33f2-4cf4-9114-6156f73aa5c8
kind: SinglePlacementSlice
metadata:
  annotations:
    kcp.io/cluster: kvdk2spgmbix
  creationTimestamp: "2023-06-05T14:55:20Z"
  generation: 1
  name: all2all
  ownerReferences:
  - apiVersion: edge.kcp.io/v1alpha1
    kind: EdgePlacement
    name: all2all
    uid: 31915018-6a25-4f01-943e-b8a0a0ed35ba
  resourceVersion: "875"
  uid: a2b8224d-5feb-40a1-adb2-67c07965f13b
"""
JUNE_DEV = """\
apiVersion: edge.kcp.io/v1alpha1
destinations:
- cluster: 1yotsgod0d2p3xa5
  locationName: dev
  syncTargetName: dev
  syncTargetUID: ea5492ec-44af-4173-a4ca-9c5cd59afcb1
kind: SinglePlacementSlice
metadata:
  annotations:
    kcp.io/cluster: kvdk2spgmbix
  creationTimestamp: "2023-06-05T14:57:00Z"
  generation: 1
  name: dev
  ownerReferences:
  - apiVersion: edge.kcp.io/v1alpha1
    kind: EdgePlacement
    name: dev
    uid: 1ac4b7f5-5521-4b5a-a0fa-cc2ec87b458b
  resourceVersion: "877"
  uid: c9c0c2fc-d721-4c73-9788-e10711bad23a
"""

JANUARY_STARTED = """\
I0120 16:32:14.882891   48037 main.go:127] "Found APIExport view" exportName="edge.kcp.io" serverURL="https://192.168.58.123:6443/services/apiexport/root/edge.kcp.io"
"""

STAGE_1_MAILBOX_CONTROLLER = """\
...
I0418 00:06:33.600117    6576 main.go:196] "Found APIExport view" exportName="workload.kcp.io" serverURL="https://192.168.58.123:6443/services/apiexport/root/workload.kcp.io"
...
I0418 00:06:34.361128    6576 controller.go:299] "Created APIBinding" worker=1 mbwsName="2rp1gztc6m5b8b7r-mb-31e5fa4d-a84e-4397-a523-63fa62d16dad" mbwsCluster="1b0eso4ld8np1d3z" bindingName="bind-edge" resourceVersion="1303"
I0418 00:06:34.361216    6576 controller.go:299] "Created APIBinding" worker=2 mbwsName="2rp1gztc6m5b8b7r-mb-58f7e799-4653-422b-adba-b1e5e85a7fac" mbwsCluster="2gqno7cdbsthqsmz" bindingName="bind-edge" resourceVersion="1305"
^C
"""
STAGE_1_MAILBOXES = """\
NAME                                                       TYPE        REGION   PHASE   URL                                                     AGE
2rp1gztc6m5b8b7r-mb-31e5fa4d-a84e-4397-a523-63fa62d16dad   universal            Ready   https://192.168.58.123:6443/clusters/1b0eso4ld8np1d3z   4m56s
2rp1gztc6m5b8b7r-mb-58f7e799-4653-422b-adba-b1e5e85a7fac   universal            Ready   https://192.168.58.123:6443/clusters/2gqno7cdbsthqsmz   4m56s
"""

STAGE_2_SCHEDULER = """\
I0418 00:23:58.516391    6754 scheduler.go:212] "Found APIExport view" exportName="edge.kcp.io" serverURL="https://192.168.58.123:6443/services/apiexport/2mk49qlwexsf0dbl/edge.kcp.io"
...
^C
"""
STAGE_2_SLICES = """\
apiVersion: v1
items:
- apiVersion: edge.kcp.io/v1alpha1
  destinations:
  - cluster: y2vvakjnwxns951p
    locationName: location-g
    syncTargetName: sync-target-g
    syncTargetUID: 6be95d47-e85e-474d-9367-bb00e1074718
  - cluster: y2vvakjnwxns951p
    locationName: location-f
    syncTargetName: sync-target-f
    syncTargetUID: f42b9446-97c5-42a7-a514-0af32350289d
  kind: SinglePlacementSlice
  metadata:
    annotations:
      kcp.io/cluster: 1em0rxri71aqmd41
    creationTimestamp: "2023-04-07T02:52:09Z"
    generation: 11
    name: edge-placement-c
    ownerReferences:
    - apiVersion: edge.kcp.io/v1alpha1
      kind: EdgePlacement
      name: edge-placement-c
      uid: 598bbf90-2487-42f6-bf02-0c9f8511acce
    resourceVersion: "1154"
    uid: 4e69bd90-ce13-4d62-8deb-f500216757eb
kind: List
metadata:
  resourceVersion: ""
"""

STAGE_3_SYNCER_CONFIG = """\
apiVersion: edge.kcp.io/v1alpha1
kind: SyncerConfig
metadata:
  annotations:
    kcp.io/cluster: 2gqno7cdbsthqsmz
  creationTimestamp: "2023-04-18T04:32:50Z"
  generation: 4
  name: the-one
  resourceVersion: "1653"
  uid: 47843727-bbe8-4660-8c25-4566fc0b6d70
spec:
  namespaceScope:
    namespaces:
    - commonstuff
    resources:
    - {apiVersion: v1, group: rbac.authorization.k8s.io, resource: roles}
    - {apiVersion: v1, group: apps, resource: deployments}
    - {apiVersion: v1, group: "", resource: configmaps}
    - {apiVersion: v1, group: "", resource: secrets}
    - {apiVersion: v1, group: "", resource: serviceaccounts}
    - {apiVersion: v1, group: networking.k8s.io, resource: ingresses}
    - {apiVersion: v1, group: "", resource: resourcequotas}
    - {apiVersion: v1, group: "", resource: services}
    - {apiVersion: v1, group: "", resource: limitranges}
    - {apiVersion: v1, group: "", resource: pods}
    - {apiVersion: v1, group: rbac.authorization.k8s.io, resource: rolebindings}
    - {apiVersion: v1, group: coordination.k8s.io, resource: leases}
  upsync:
  - apiGroup: group2.test
    names:
    - William
    resources:
    - cogs
  - apiGroup: group1.test
    names:
    - george
    - cosmo
    namespaces:
    - orbital
    resources:
    - sprockets
    - flanges
status: {}
"""
STAGE_3_FLORIN_NAMESPACES = """\
NAME          STATUS   AGE
commonstuff   Active   6m34s
default       Active   32m
"""
STAGE_3_FLORIN_DEPLOYMENTS = """\
NAMESPACE     NAME      READY   UP-TO-DATE   AVAILABLE   AGE
commonstuff   commond   0/0     0            0           6m44s
"""
STAGE_3_GUILDER_DEPLOYMENTS = """\
NAMESPACE      NAME       READY   UP-TO-DATE   AVAILABLE   AGE
commonstuff    commond    0/0     0            0           8m26s
specialstuff   speciald   0/0     0            0           8m26s
"""

STAGE_4_FLORIN = [
    "commonstuff          Active   8h\n",
    """\
NAME      READY   UP-TO-DATE   AVAILABLE   AGE
commond   1/1     1            1           8h
""",
]
STAGE_4_GUILDER = [
    """\
commonstuff          Active   8h
specialstuff         Active   8h
""",
    """\
commonstuff          commond                  1/1     1            1           8h
specialstuff         speciald                 1/1     1            1           8h
""",
]
PAGE = """\
<!DOCTYPE html>
<html>
  <body>
    This is a {word} web site.
  </body>
</html>
"""
