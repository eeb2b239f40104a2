import json
import unittest

import kaos
import policy
from kaos import testing


def below():
    """Returns a plan of a policy below."""
    spec = {
        "containers": [{"name": "main", "image": "ghcr.io/org/app:1"}],
        "initContainers": [{"name": "first", "image": "busybox"}],
    }
    template = {"metadata": {"labels": {"app": "any"}}, "spec": spec}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "any"}, "spec": {"template": template}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "any"}}
    return kaos.plan([], deployment, service)


def amended(registry):
    subject = testing.subject(policy.example(*policy.KINDS[0]), policy.SCHEMA, {"registry": registry})
    return policy.amend(subject, below())


class Overlay(unittest.TestCase):
    def test_every_image_comes_from_the_registry(self):
        deployment, service = map(json.loads, amended("registry.example.com:5000").manifests)
        pod = deployment["spec"]["template"]["spec"]
        self.assertEqual(pod["containers"][0]["image"], "registry.example.com:5000/org/app:1")
        self.assertEqual(pod["initContainers"][0]["image"], "registry.example.com:5000/library/busybox")
        self.assertEqual(service, json.loads(below().manifests[1]))

    def test_without_a_registry_the_plan_stays_as_it_is(self):
        self.assertEqual(amended(""), below())


if __name__ == "__main__":
    unittest.main()
