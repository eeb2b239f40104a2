import unittest

import kaos
from componentize_py_types import Err


def literal(name, value, origin, container="c"):
    return kaos.EnvVar(container, name, kaos.EnvSource_Literal(value), origin)


class Mapping(unittest.TestCase):
    def test_a_held_variable_keeps_its_value_and_the_user_wins_over_it(self):
        env = kaos.Env([]).hold("c", "A", kaos.EnvSource_Literal("held"), "spec.a").set("c", "A", "own", "settings.a")
        self.assertEqual(env.vars(), [literal("A", "held", "spec.a")])
        env.user("c", [{"name": "A", "value": "mine"}], "spec.env")
        self.assertEqual(env.vars(), [literal("A", "mine", "spec.env[0]")])
        self.assertEqual(env.remove("c", "A").vars(), [])

    def test_a_variable_moves_behind_the_one_that_its_value_refers_to(self):
        entries = [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}, {"name": "X", "value": "$(Y)"}]
        self.assertEqual(kaos.each_once(entries), entries[1:])
        entries[2]["value"] = "3"
        self.assertEqual(kaos.each_once(entries), [entries[2], entries[1]])

    def test_the_final_mapping_says_which_variables_the_patch_brought(self):
        known = [literal("A", "1", "settings.a"), literal("B", "1", "settings.b")]
        pod = {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]}
        both = kaos.env_of_pod_spec(pod, known, "spec.podSpec")
        self.assertEqual(both, [literal("A", "1", "settings.a"), literal("B", "2", "spec.podSpec")])

    def test_wrong_variables_of_a_patch_are_named_with_their_path(self):
        wrong = [{"value": "x"}, {"name": "A=B"}, {"name": "A", "value": 1}, {"name": "A", "$patch": "delete"}]
        with self.assertRaises(Err) as refused:
            kaos.check_patch({"containers": [{"name": "c", "env": wrong}]}, "spec.podSpec")
        paths = [violation.path for violation in refused.exception.value.value]
        root = "spec.podSpec.containers[0].env"
        self.assertEqual(paths, [f"{root}[0].name", f"{root}[1].name", f"{root}[2].value"])


class Quotes(unittest.TestCase):
    def test_a_shown_text_has_no_control_characters(self):
        self.assertEqual(kaos.shown('a"\n\u200b\x07é', 10), 'a\\"\\n\\u{200b}\\u{7}é')
        self.assertEqual(kaos.shown("abc", 2), "ab")

    def test_a_word_of_a_shell_is_quoted_if_necessary(self):
        self.assertEqual([kaos.shell_word(of) for of in ["a-b==1", "", "it's"]], ["'a-b==1'", "''", "'it'\\''s'"])
