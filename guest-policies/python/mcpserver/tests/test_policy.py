import json
import unittest

import expose
import functions
import policy
import security
from kaos import testing


def subject(spec, **more):
    metadata = {"name": "tools", "namespace": "team"}
    object = {"apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer", "metadata": metadata, "spec": spec}
    return testing.subject(object, policy.SCHEMA, **more)


def container(plan):
    return testing.manifest(plan, "Deployment")["spec"]["template"]["spec"]["containers"][0]


def violations(of):
    try:
        testing.plan(policy, of)
    except policy.kaos.Refused as refused:
        return [(violation.path, violation.message) for violation in refused.value.value]
    raise AssertionError("the policy does not refuse the object")


class Plan(unittest.TestCase):
    def test_a_runtime_of_the_settings_starts_with_its_image_and_its_parameters(self):
        plan = testing.plan(policy, subject({"runtime": "python-string", "params": "def $(f)(): pass"}))
        params = plan.env[0]
        found = (params.name, params.source.value, params.origin)
        self.assertEqual(found, ("MCP_TOOLS_STRING", "def $$(f)(): pass", "spec.params"))
        self.assertIn("mcp-python-string", container(plan)["image"])

    def test_the_registry_of_the_cluster_replaces_the_runtimes_of_the_settings(self):
        found = {"registry": [{"data": {"runtimes.yaml": "runtimes:\n  own: {image: own:1, args: [--port, 8000]}\n"}}]}
        plan = testing.plan(policy, subject({"runtime": "own"}, found=found))
        self.assertEqual(container(plan)["args"], ["--port", "8000"])
        [(path, message)] = violations(subject({"runtime": "slack"}, found=found))
        self.assertEqual(path, "spec.runtime")
        self.assertIn("use a runtime of the registry (own), or custom", message)

    def test_a_registry_that_cannot_be_read_is_waited_for(self):
        for text, reason in [
            ("runtimes: [", "line 1, "),
            ("- a", "it must be a mapping"),
            ("a: {image: [1]}", "a.image"),
            ("a: {image: '\x7f'}", "special characters are not allowed"),
            ("a: {? [b] : c}", "line 1, column 7: a key must be plain text"),
            ("a: &x {b: *x}", "this alias has no anchor before it"),
            ("a: {image: b, image: c}", 'the key "image" occurs twice'),
            ("a: {<<: b}", "<< takes an object"),
            ("a: " + "[" * 5_000, "nested too deeply"),
            ("a: {args: [~]}", "runtimes.a.args[0]: must be a string, not null"),
            ("a: {paramsEnvVar: 'P=', tools: b}", "runtimes.a.tools: must be a list"),
            ("#" * 150_001, "it has 150001 bytes, but the limit is 150000"),
            ("#" + "é" * 75_000, "it has 150001 bytes"),
        ]:
            with self.subTest(text[:40]), self.assertRaises(policy.kaos.Refused) as refused:
                found = {"registry": [{"data": {"runtimes.yaml": text}}]}
                testing.plan(policy, subject({"runtime": "a"}, found=found))
            [blocker] = refused.exception.value.value
            self.assertEqual(blocker.reason, "RegistryUnusable")
            self.assertIn(reason, blocker.message)

    def test_the_path_of_a_runtime_with_a_dot_is_in_quotes(self):
        found = {"registry": [{"data": {"runtimes.yaml": "my.own: {image: [1]}"}}]}
        with self.assertRaises(policy.kaos.Refused) as refused:
            testing.plan(policy, subject({"runtime": "my.own"}, found=found))
        self.assertIn('runtimes["my.own"].image: must be a string', refused.exception.value.value[0].message)

    def test_aliases_and_merge_keys_of_a_registry_work(self):
        text = "base: &b {image: b:1, args: [x]}\nown: {<<: *b, image: own:1}\nmany: {<<: [{args: [y]}, *b]}\n"
        text += "#" * (150_000 - len(text))
        found = {"registry": [{"data": {"runtimes.yaml": text}}]}
        for runtime, image, args in [("own", "own:1", ["x"]), ("many", "b:1", ["y"])]:
            main = container(testing.plan(policy, subject({"runtime": runtime}, found=found)))
            self.assertEqual((main["image"], main["args"]), (image, args))

    def test_nested_aliases_are_read_once(self):
        text = "l0: &l0 [a]\n" + "".join(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}, *l{n - 1}]\n" for n in range(1, 60))
        found = {"registry": [{"data": {"runtimes.yaml": text + "own: {image: own:1}"}}]}
        self.assertEqual(container(testing.plan(policy, subject({"runtime": "own"}, found=found)))["image"], "own:1")

    def test_the_pod_spec_of_the_user_is_merged(self):
        pod_spec = {"containers": [{"name": "mcp-server", "env": [{"name": "A", "value": "1"}]}], "nodeName": "n"}
        plan = testing.plan(policy, subject({"runtime": "custom", "container": {"image": "i"}, "podSpec": pod_spec}))
        self.assertEqual(testing.manifest(plan, "Deployment")["spec"]["template"]["spec"]["nodeName"], "n")
        self.assertEqual([variable.origin for variable in plan.env], ["spec.podSpec", "settings.logLevel"])


class Parts(unittest.TestCase):
    def test_only_functions_at_top_level_are_tools(self):
        source = (
            "def a():\n  def inner(): pass\n'''\ndef text(): pass\n'''\nasync def b ( x ): pass\nx = (\ndef no(): 1)\n"
            "# def c():\ndef a(): pass\n"
        )
        self.assertEqual(functions.top_level(source), ["a", "b"])

    def test_a_long_timeout_is_spelled_for_the_gateway(self):
        for text, wanted in [
            ("30s", "30s"),
            ("100000s", "27h46m40s"),
            ("000000s", "0s"),
            ("1h30m", "1h30m"),
            ("100000h", None),
            ("99999999999999999999s", None),
        ]:
            self.assertEqual(expose.for_gateway(text), wanted, text)

    def test_addresses_of_services_are_read(self):
        wanted = {"name": "pdp", "namespace": "kaos", "port": 9191}
        self.assertEqual(security.service("http://pdp.kaos.svc.cluster.local:9191/path"), wanted)
        self.assertEqual(security.namespace("https://a.b.svc/x"), "b")
        for other in ["pdp", "pdp.kaos.svc", "a.b.com:80", "pdp.kaos:x"]:
            self.assertIsNone(security.service(other), other)

    def test_the_description_has_the_schema(self):
        self.assertEqual(json.loads(policy.describe().settings_schema), policy.SCHEMA)
