import json
import unittest

import kaos

DEPLOYMENT = {
    "kind": "Deployment",
    "metadata": {"name": "a"},
    "spec": {
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]},
        },
    },
}


class Amend(unittest.TestCase):
    def test_an_image_gets_another_registry_and_keeps_its_name(self):
        for image, registry, wanted in [
            ("nginx", "m.example", "m.example/library/nginx"),
            ("nginx:1.29", "m.example", "m.example/library/nginx:1.29"),
            ("docker.io/nginx", "m.example", "m.example/library/nginx"),
            ("axsauze/agent:v1", "m.example", "m.example/axsauze/agent:v1"),
            ("ghcr.io/org/app@sha256:ab", "m.example", "m.example/org/app@sha256:ab"),
            ("localhost/app", "m.example", "m.example/app"),
            ("registry:5000/app:1", "m.example", "m.example/app:1"),
            ("m.example/org/app:1", "m.example", "m.example/org/app:1"),
            ("m.example/app", "m.example/hub/", "m.example/hub/app"),
            ("nginx", "", "nginx"),
        ]:
            self.assertEqual(kaos.amend.on_registry(image, registry), wanted)

    def test_only_changed_manifests_are_written_again(self):
        plan = kaos.plan([], DEPLOYMENT, {"kind": "Service"})
        plan.manifests[1] = "{ }"
        for template in kaos.amend.pod_templates(plan):
            for container in kaos.amend.containers(template):
                container["image"] = "x:1"
            kaos.amend.add_labels(template, {"team": "a", "app": "other"})
            kaos.amend.push(template, "tolerations", {"key": "gpu"})
            kaos.amend.push(template, "containers", {"name": "proxy"})
        template = json.loads(plan.manifests[0])["spec"]["template"]
        self.assertEqual(template["metadata"]["labels"], {"app": "a", "team": "a"})
        self.assertEqual(template["spec"], {
            "containers": [{"image": "x:1", "name": "c"}, {"name": "proxy"}],
            "initContainers": [{"image": "x:1", "name": "i"}],
            "tolerations": [{"key": "gpu"}],
        })
        self.assertEqual(plan.manifests[1], "{ }")

    def test_a_loop_that_ends_early_keeps_its_change(self):
        plan = kaos.plan([], DEPLOYMENT, DEPLOYMENT)
        for template in kaos.amend.pod_templates(plan):
            kaos.amend.add_labels(template, {"team": "a"})
            break
        self.assertIn("team", plan.manifests[0])
        self.assertNotIn("team", plan.manifests[1])

    def test_a_changed_and_an_added_child_have_origins_at_their_positions(self):
        plan = kaos.plan([], {"kind": "Service"}, (DEPLOYMENT, {"spec.replicas": "spec.replicas"}))
        for child in kaos.amend.children(plan):
            template = kaos.amend.pod_template(child.manifest)
            if template:
                kaos.amend.push(template, "tolerations", {"key": "gpu"})
                child.declare("spec.template.spec.tolerations", "settings.tolerations")
                kaos.amend.add(plan, {"kind": "ConfigMap"}, {"data": "settings.data"})
        self.assertEqual(plan.origins, [
            kaos.Origin(1, "spec.replicas", "spec.replicas"),
            kaos.Origin(1, "spec.template.spec.tolerations", "settings.tolerations"),
            kaos.Origin(2, "data", "settings.data"),
        ])
        self.assertEqual(plan.manifests[2:], ['{"kind":"ConfigMap"}'])

    def test_pod_templates_are_found_in_all_workloads(self):
        pod = {"spec": {"containers": []}}
        for manifest, found in [
            (pod, True),
            ({"spec": {"template": pod}}, True),
            ({"spec": {"jobTemplate": {"spec": {"template": pod}}}}, True),
            ({"kind": "Service", "spec": {}}, False),
            ({"kind": "Odd", "spec": []}, False),
        ]:
            self.assertEqual(kaos.amend.pod_template(manifest) is not None, found)
