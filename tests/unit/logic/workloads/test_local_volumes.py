"""Volumes are named after the claim they are made for, so no two claims share a directory."""

from __future__ import annotations

from skerry.logic.workloads.local_volumes import provisioned_name, provisioned_path


def claim(uid: str) -> dict[str, dict[str, str]]:
    return {"metadata": {"uid": uid, "namespace": "shop", "name": "data"}}


def test_a_claim_made_again_under_its_name_gets_another_directory() -> None:
    assert provisioned_name(claim("u1")) == "pvc-u1"
    assert provisioned_path("/v", claim("u1")) == "/v/pvc-u1_shop_data"
    assert provisioned_path("/v", claim("u1")) != provisioned_path("/v", claim("u2"))
