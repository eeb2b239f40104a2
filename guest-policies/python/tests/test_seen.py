import json
import unittest
from pathlib import Path

import kaos
from wit_world.imports import types

CASES = Path(__file__).resolve().parents[2] / "sdk/tests/data/default-reports.json"
OUTCOMES = {
    "applied": types.Outcome_Applied(),
    "gated": types.Outcome_Gated(),
    "refused": types.Outcome_Refused(types.Refusal_Unsupported("no")),
    "failed": types.Outcome_Failed("no"),
}


def rollout(wanted, status, generation=2):
    live = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "q", "generation": generation},
        "spec": {"replicas": wanted},
        "status": status,
    }
    identity = types.Reference("apps/v1", "StatefulSet", "n", "q")
    child = types.Child(identity, json.dumps(live))
    return kaos.Rollout.of(types.Observation(types.Outcome_Applied(), [child], [], [], [], "{}"), "StatefulSet")


def status(replicas, updated, available, observed=2):
    return {
        "observedGeneration": observed,
        "replicas": replicas,
        "updatedReplicas": updated,
        "availableReplicas": available,
        "readyReplicas": available,
    }


class Rollouts(unittest.TestCase):
    def test_a_rollout_serves_with_one_new_pod_and_is_complete_with_all(self):
        done, half = rollout(3, status(3, 3, 3)), rollout(3, status(4, 2, 3))
        self.assertEqual((done.serves, done.is_complete), (True, True))
        self.assertEqual((half.available, half.serves, half.is_complete), (1, True, False))
        self.assertFalse(rollout(1, status(2, 2, 1)).is_complete)
        self.assertTrue(rollout(0, status(0, 0, 0)).is_complete)

    def test_an_unobserved_or_missing_workload_is_not_complete(self):
        unobserved = rollout(3, status(3, 3, 3, observed=1))
        self.assertEqual((unobserved.ready, unobserved.available, unobserved.is_complete), (3, 0, False))
        self.assertFalse(kaos.Rollout().is_complete)

    def test_a_count_of_null_is_the_default(self):
        empty = dict.fromkeys(status(0, 0, 0))
        nothing = rollout(None, empty, generation=None)
        self.assertEqual((nothing.wanted, nothing.replicas, nothing.available), (1, 0, 0))
        self.assertFalse(nothing.serves)


class DefaultReports(unittest.TestCase):
    def test_the_default_report_agrees_with_the_cases_of_all_languages(self):
        cases = json.loads(CASES.read_text())
        self.assertGreater(len(cases), 10)
        for case in cases:
            with self.subTest(case["name"]):
                children = [
                    types.Child(
                        types.Reference(child["apiVersion"], child["kind"], "n", child["name"]),
                        None if child["live"] is None else json.dumps(child["live"]),
                    )
                    for child in case["children"]
                ]
                seen = types.Observation(OUTCOMES[case["outcome"]], children, [], [], [], "{}")
                report = kaos.default_report(seen)
                got = {"ready": report.ready, "phase": report.phase, "message": report.message}
                self.assertEqual(got, case["report"])


if __name__ == "__main__":
    unittest.main()
