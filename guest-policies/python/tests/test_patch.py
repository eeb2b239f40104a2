import copy
import json
import unittest
from pathlib import Path

from componentize_py_types import Err
from kaos import patch
from kaos.merge import Merger, Mistake, is_directive
from kaos.merge_table import CONTAINER, METADATA, PLAIN, POD_SPEC, Rule, Type
from kaos.refusal import text

VECTORS = Path(__file__).resolve().parents[2] / "sdk/tests/data/strategic-merge.json"

# The types of objects that only the test vectors patch, and no policy.
CONDITIONS = Type({"conditions": Rule(PLAIN, "type")})
TEMPLATE = Type({"metadata": Rule(METADATA), "spec": Rule(POD_SPEC)})
DEPLOYMENT = Type({
    "metadata": Rule(METADATA),
    "spec": Rule(Type({"strategy": Rule(Type(by="type")), "template": Rule(TEMPLATE)})),
    "status": Rule(CONDITIONS),
})
SERVICE = Type({
    "metadata": Rule(METADATA),
    "spec": Rule(Type({"ports": Rule(PLAIN, "port")})),
    "status": Rule(CONDITIONS),
})
TYPES = {"PodSpec": POD_SPEC, "Container": CONTAINER, "Deployment": DEPLOYMENT, "Service": SERVICE}


def tidy(value):
    """Removes the directives and nulls that Go leaves in a value."""
    if isinstance(value, dict):
        return {key: tidy(of) for key, of in value.items() if not is_directive(key) and of is not None}
    return [tidy(item) for item in value] if isinstance(value, list) else value


class Patch(unittest.TestCase):
    def test_every_vector_gives_the_result_of_go_except_for_listed_deviations(self):
        vectors = json.loads(VECTORS.read_text())
        self.assertGreater(len(vectors), 100)
        for vector in vectors:
            with self.subTest(vector["name"]):
                try:
                    ours = Merger().run(vector["base"] or {}, vector["patch"], TYPES.get(vector["schema"], PLAIN))
                except Mistake:
                    ours = None
                wanted = vector.get("ours") if "deviation" in vector else tidy(vector.get("merged"))
                self.assertEqual(text(ours), text(wanted))

    def test_mistakes_are_named_with_their_path(self):
        base = {"containers": [{"name": "a", "env": [{"name": "A"}]}]}
        for of, wanted in [
            ({"containers": [{"image": "x"}]}, ("p.containers[0]", "each item needs the field name")),
            ({"containers": ["x"]}, ("p.containers[0]", "must be an object")),
            ({"containers": [{"name": "a", "$patch": "x"}]}, ("p.containers[0].$patch", "$patch must be delete")),
            ({"$retainKeys": ["a"], "b": 1}, ("p.$retainKeys", "$retainKeys must list every field")),
            ({"containers": [{"name": "a", "$patch": "merge"}]}, ("p.containers[0]", "$patch: merge is not possible")),
            ([], ("p", "must be an object")),
            (
                {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {}}]},
                ("p.volumes[0].hostPath", "must not be set together with emptyDir"),
            ),
        ]:
            with self.subTest(of), self.assertRaises(Err) as refused:
                patch.pod_spec(copy.deepcopy(base), of, "a", "p")
            [violation] = refused.exception.value.value
            self.assertEqual(violation.path, wanted[0])
            self.assertTrue(violation.message.startswith(wanted[1]), violation.message)

    def test_rivals_replace_each_other_and_the_container_of_the_policy_stays_first(self):
        base = {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"port": 1}, "periodSeconds": 3}}]}
        merged = patch.pod_spec(base, {"containers": [{"name": "b", "image": "b"}]}, "a", "spec.podSpec")
        self.assertEqual([container["name"] for container in merged["containers"]], ["a", "b"])
        own = patch.container(merged["containers"][0], {"livenessProbe": {"tcpSocket": {"port": 2}}}, "spec.container")
        self.assertEqual(own["livenessProbe"], {"tcpSocket": {"port": 2}, "periodSeconds": 3})
