"""A server is made of its parts, without the rules that are left out."""

from __future__ import annotations

import pytest

from skerry.app.api_server import DISABLEABLE
from tests.kit.server.harness import serving
from tests.kit.server.webhooks import configuration, deny, webhook, webhook_server

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ("MutatingAdmissionWebhook", "mutatingwebhookconfigurations"),
        ("ValidatingAdmissionWebhook", "validatingwebhookconfigurations"),
    ],
)
async def test_webhooks_that_are_left_out_are_stored_and_not_called(rule: str, kind: str) -> None:
    async with webhook_server() as hooks, serving(disabled_admission=frozenset({rule})) as server:
        made = configuration(webhook(hooks.on("/x", deny)))
        assert (await server.create(f"{ADMISSION}/{kind}", made)).status == 201
        assert (await server.create(MAPS, {"metadata": {"name": "a"}})).status == 201
        assert hooks.connections == 0


async def test_policies_that_are_left_out_refuse_nothing() -> None:
    policy = {
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "operations": ["*"],
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["configmaps"],
                    }
                ]
            },
            "validations": [{"expression": "false"}],
        },
    }
    binding = {
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    }
    for left_out, code in ((set[str](), 422), ({"ValidatingAdmissionPolicy"}, 201)):
        async with serving(disabled_admission=frozenset(left_out)) as server:
            await server.create(f"{ADMISSION}/validatingadmissionpolicies", policy)
            await server.create(f"{ADMISSION}/validatingadmissionpolicybindings", binding)
            assert (await server.create(MAPS, {"metadata": {"name": "a"}})).status == code


async def test_every_rule_that_can_be_left_out_is() -> None:
    async with serving(runs_pods=True, disabled_admission=frozenset(DISABLEABLE)) as server:
        clients = {"MutatingAdmissionWebhook"}  # it stays as a step, with nothing to call
        rules = {type(rule) for rule in server.api.admission_rules}
        assert not {DISABLEABLE[name] for name in DISABLEABLE.keys() - clients} & rules
