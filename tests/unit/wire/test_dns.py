"""DNS messages on the wire."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.edge.agent.service_names import ServiceNames
from skerry.wire.dns import AAAA, CNAME, SRV, A, Record, answered

_NO_NAME = 3


def query(name: str, kind: int = A, identity: int = 7) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return (
        struct.pack("!HHHHHH", identity, 0x0100, 1, 0, 0, 0)
        + labels
        + struct.pack("!BHH", 0, kind, 1)
    )


def read(answer: bytes | None) -> tuple[int, list[tuple[int, bytes]]]:
    """Return the code of an answer, and kind and content of its records."""
    assert answer is not None
    _, flags, questions, count = struct.unpack_from("!HHHH", answer)
    position = 12
    for _ in range(questions):
        while answer[position]:
            position += 1 + answer[position]
        position += 5
    found = []
    for _ in range(count):
        _, kind, _, _, size = struct.unpack_from("!HHHIH", answer, position)
        found.append((kind, answer[position + 12 : position + 12 + size]))
        position += 12 + size
    assert position == len(answer)
    return flags & 0xF, found


class TestWire:
    def test_an_address_is_answered_and_the_question_comes_back(self) -> None:
        asked = query("web.cluster.local")
        answer = answered(asked, lambda name: [Record(A, "10.96.0.7")])
        assert read(answer) == (0, [(A, socket.inet_aton("10.96.0.7"))])
        assert answer is not None
        assert answer[12 : len(asked)] == asked[12:]

    def test_a_name_without_records_of_a_kind_exists_all_the_same(self) -> None:
        assert read(answered(query("web", AAAA), lambda _: [Record(A, "10.0.0.1")])) == (0, [])

    def test_a_name_nobody_has_is_said_to_be_none(self) -> None:
        assert read(answered(query("nobody"), lambda _: None)) == (_NO_NAME, [])

    def test_names_are_asked_for_in_small_letters(self) -> None:
        seen: list[str] = []
        answered(query("Web.Default"), seen.append)
        assert seen == ["web.default"]

    def test_another_name_answers_a_question_for_an_address(self) -> None:
        code, found = read(answered(query("out"), lambda _: [Record(CNAME, "example.org")]))
        assert (code, found) == (0, [(CNAME, b"\x07example\x03org\x00")])

    def test_what_does_not_fit_is_left_out_and_said(self) -> None:
        many = [Record(A, f"10.0.{n // 250}.{n % 250}") for n in range(200)]
        answer = answered(query("many"), lambda _: many)
        assert answer is not None
        assert len(answer) <= 512
        assert struct.unpack_from("!H", answer, 2)[0] & 0x0200
        assert read(answer)[1]

    @given(st.binary(max_size=80))
    def test_nothing_that_arrives_does_harm(self, data: bytes) -> None:
        answered(data, lambda _: [Record(A, "10.0.0.1")])

    @given(st.lists(st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True), min_size=1, max_size=5))
    def test_any_name_arrives_as_it_was_asked(self, labels: Sequence[str]) -> None:
        seen: list[str] = []
        answered(query(".".join(labels)), seen.append)
        assert seen == [".".join(labels)]


def service(**spec: Any) -> Object:
    return {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}


def names(found: Object | None, *endpoints: Object) -> ServiceNames:
    def find(namespace: str, name: str) -> Object | None:
        return found if (namespace, name) == ("shop", "web") else None

    return ServiceNames(find, lambda namespace, name: [{"endpoints": list(endpoints)}])


def endpoint(address: str, *, ready: bool = True, hostname: str = "") -> Object:
    return {"addresses": [address], "conditions": {"ready": ready}, "hostname": hostname}


class TestNames:
    def test_a_service_is_its_address(self) -> None:
        found = names(service(clusterIP="10.96.0.7")).records("web.shop.svc.cluster.local")
        assert found == (Record(A, "10.96.0.7"),)

    def test_a_headless_service_is_its_ready_endpoints(self) -> None:
        known = names(
            service(clusterIP="None"),
            endpoint("10.244.0.2"),
            endpoint("10.244.0.3", ready=False, hostname="web-1"),
        )
        assert known.records("web.shop.svc.cluster.local") == [Record(A, "10.244.0.2")]
        # A peer is found by name before it is ready, or it could never become so.
        assert known.records("web-1.web.shop.svc.cluster.local") == [Record(A, "10.244.0.3")]
        assert known.records("web-9.web.shop.svc.cluster.local") is None

    def test_an_external_name_is_another_name(self) -> None:
        known = names(service(type="ExternalName", externalName="example.org"))
        assert known.records("web.shop.svc.cluster.local") == (Record(CNAME, "example.org"),)

    def test_a_named_port_has_a_place(self) -> None:
        known = names(service(clusterIP="10.96.0.7", ports=[{"name": "http", "port": 80}]))
        target = "web.shop.svc.cluster.local"
        assert known.records(f"_http._tcp.{target}") == [Record(SRV, target, 80)]
        assert known.records(f"_http._udp.{target}") is None

    def test_a_pod_is_its_address_with_dashes(self) -> None:
        assert names(None).records("10-244-0-2.shop.pod.cluster.local") == (
            Record(A, "10.244.0.2"),
        )
        assert names(None).records("nonsense.shop.pod.cluster.local") is None

    @pytest.mark.parametrize("name", ["web.other.svc.cluster.local", "example.org", "web", "svc"])
    def test_other_names_are_nobodys(self, name: str) -> None:
        assert names(service(clusterIP="10.96.0.7")).records(name) is None
