import json
import unittest

import policy
from componentize_py_types import Err
from kaos import testing


def plan(spec):
    return testing.plan(policy, testing.subject(policy.website(spec), policy.SCHEMA))


class Policy(unittest.TestCase):
    def test_the_title_reaches_the_container_and_says_where_it_came_from(self):
        [title] = plan({"title": "Hello"}).env
        self.assertEqual((title.name, title.source.value, title.origin), ("SITE_TITLE", "Hello", "spec.title"))

    def test_a_users_variable_wins(self):
        [title] = plan({"title": "Hello", "env": [{"name": "SITE_TITLE", "value": "Mine"}]}).env
        self.assertEqual(title.source.value, "Mine")

    def test_a_blank_title_is_refused_with_its_path(self):
        with self.assertRaises(Err) as refused:
            plan({"title": " "})
        self.assertEqual(refused.exception.value.value[0].path, "spec.title")

    def test_the_service_selects_the_pods(self):
        deployment, service = map(json.loads, plan({"title": "Hello"}).manifests)
        self.assertEqual(service["spec"]["selector"], deployment["spec"]["template"]["metadata"]["labels"])


if __name__ == "__main__":
    unittest.main()
