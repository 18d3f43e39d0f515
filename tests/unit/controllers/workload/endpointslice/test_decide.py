"""Plans of EndpointSlices: applying one reaches the goal, and a second plan is empty."""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.controllers.workload.endpointslice import decide as endpointslice
from skerry.controllers.workload.endpointslice.observe import Observed as ObservedService
from skerry.logic.machinery.plan import Create, Delete
from tests.kit.workload_objects import LABELS
from tests.kit.workloads import Objects, run


class TestEndpoints:
    service: Object = {  # noqa: RUF012 - read only
        "metadata": {"name": "web", "namespace": "ns", "uid": "s"},
        "spec": {"selector": LABELS, "ports": [{"port": 80, "targetPort": "http"}]},
    }

    def pod(self, number: int, *, ready: bool = True, port: int = 8080) -> Object:
        found: Object = {
            "metadata": {"name": f"p{number}", "namespace": "ns", "uid": f"u{number}"},
            "spec": {"containers": [{"ports": [{"name": "http", "containerPort": port}]}]},
        }
        run(found)
        found["status"]["podIP"] = f"10.0.{number // 250}.{number % 250 + 1}"
        if not ready:
            found["status"]["conditions"][0]["status"] = "False"
        return found

    def test_a_hundred_endpoints_fill_a_slice(self) -> None:
        pods = tuple(self.pod(n) for n in range(250))
        plan = endpointslice.decide(ObservedService(self.service, pods, ()))
        sizes = [
            len(action.object["endpoints"])
            for action in plan
            if isinstance(action, Create) and action.target.gvr.resource == "endpointslices"
        ]
        assert sorted(sizes) == [50, 100, 100]

    def test_pods_whose_port_has_another_number_get_slices_of_their_own(self) -> None:
        pods = (self.pod(1), self.pod(2, port=9090, ready=False))
        objects = Objects()
        plan = endpointslice.decide(ObservedService(self.service, pods, ()))
        objects.apply(plan)
        slices = objects.of("endpointslices")
        assert sorted(item["ports"][0]["port"] for item in slices) == [8080, 9090]
        (endpoints,) = objects.of("endpoints")
        kinds = [set(subset) - {"ports"} for subset in endpoints["subsets"]]
        assert kinds == [{"addresses"}, {"notReadyAddresses"}]
        again = ObservedService(self.service, pods, slices, endpoints)
        assert not endpointslice.decide(again), "nothing is left to do"

    def test_slices_of_others_are_left_alone(self) -> None:
        foreign = {"metadata": {"name": "theirs", "namespace": "ns", "uid": "t", "labels": {}}}
        plan = endpointslice.decide(ObservedService(self.service, (), (foreign,)))
        assert not any(isinstance(action, Delete) for action in plan)
