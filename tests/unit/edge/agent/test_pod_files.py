"""The files that tell a pod where to ask for names."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.edge.agent.pod_files import host_name, hosts_file, resolver_file


class TestFiles:
    def pod(self, **spec: Any) -> Object:
        return {"metadata": {"name": "web-0", "namespace": "shop"}, "spec": spec}

    def test_cluster_names_come_first_and_settings_are_added(self) -> None:
        options = [{"name": "ndots", "value": "2"}, {"name": "edns0"}]
        config = {"searches": ["example.org"], "options": options}
        text = resolver_file(self.pod(dnsConfig=config), "10.96.0.10", "")
        assert text == (
            "search shop.svc.cluster.local svc.cluster.local cluster.local example.org\n"
            "nameserver 10.96.0.10\n"
            "options ndots:2 edns0\n"
        )

    def test_policies_choose_the_machines_or_ones_own(self) -> None:
        machines = "nameserver 192.0.2.1\n"
        assert resolver_file(self.pod(dnsPolicy="Default"), "10.96.0.10", machines) == machines
        assert resolver_file(self.pod(hostNetwork=True), "10.96.0.10", machines) == machines
        own = self.pod(dnsPolicy="None", dnsConfig={"nameservers": ["192.0.2.7"]})
        assert resolver_file(own, "10.96.0.10", machines) == "nameserver 192.0.2.7\n"

    def test_hosts_name_the_pod_its_subdomain_and_its_aliases(self) -> None:
        aliases = [{"ip": "192.0.2.9", "hostnames": ["a", "b"]}]
        text = hosts_file(self.pod(subdomain="web", hostAliases=aliases), "10.244.0.2")
        assert "10.244.0.2\tweb-0.web.shop.svc.cluster.local\tweb-0\n" in text
        assert text.endswith("192.0.2.9\ta\tb\n")

    def test_a_long_name_is_cut_to_what_the_kernel_takes(self) -> None:
        pod = {"metadata": {"name": "a" * 62 + "-bcd"}, "spec": {}}
        assert host_name(pod) == "a" * 62
