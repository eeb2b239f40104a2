import unittest

from kaos import testing


class Defaults(unittest.TestCase):
    def test_a_property_without_a_default_is_absent(self):
        schema = {"properties": {
            "image": {"type": "string", "default": "i"},
            "resources": {"type": "object"},
            "probe": {"properties": {"port": {"default": 80}, "path": {"type": "string"}}},
            "gateway": {"properties": {"name": {"type": "string"}}},
        }}
        self.assertEqual(testing.defaults(schema), {"image": "i", "probe": {"port": 80}})

    def test_a_subject_of_a_schema_without_defaults_has_its_own_settings(self):
        of = testing.subject({}, {"properties": {"image": {"type": "string"}}}, {"image": "i"})
        self.assertEqual(of.settings, '{"image":"i"}')
