"""The node agent: runs the pods of one node, without a container engine.

It registers a Node, watches the pods bound to it, and turns each into local processes through a
``ContainerRuntime``. Addresses of pods and Services are names that ``network`` resolves to ports
on the loopback interface, because a plain process cannot have an address of its own.

Reads Pods, Services, EndpointSlices, ConfigMaps, Secrets, claims and volumes. Writes the Node and
its Lease, pod status, Events, and the final deletion of pods that have ended.

Invariants: no process outlives its pod (each is recorded by pid and start time before it runs
anything of the user's); no process is signalled that is not surely ours.
"""
