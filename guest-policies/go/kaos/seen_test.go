package kaos

import (
	"os"
	"testing"
)

func TestTheDefaultReportAgreesWithTheCasesOfAllLanguages(t *testing.T) {
	text, err := os.ReadFile("../../sdk/tests/data/default-reports.json")
	if err != nil {
		t.Fatal(err)
	}
	cases, _ := Parse(JSON(text)).([]any)
	if len(cases) < 10 {
		t.Fatalf("got %d cases", len(cases))
	}
	outcomes := map[any]Outcome{
		"applied": Applied{}, "gated": Gated{}, "refused": Refused{Unsupported("no")}, "failed": Failed("no"),
	}
	for _, item := range cases {
		c := item.(Map)
		seen := &Observation{Outcome: outcomes[c["outcome"]]}
		for _, item := range c["children"].([]any) {
			child := item.(Map)
			own := Child{Identity: Reference{
				APIVersion: child["apiVersion"].(string), Kind: child["kind"].(string), Name: child["name"].(string),
			}}
			if child["live"] != nil {
				own.Live = Text(child["live"])
			}
			seen.Children = append(seen.Children, own)
		}
		report := DefaultReport(seen)
		got := Text(Map{"ready": report.Ready, "phase": report.Phase, "message": report.Message})
		if want := Text(c["report"]); got != want {
			t.Errorf("%s:\n got %s\nwant %s", c["name"], got, want)
		}
	}
}

func TestARolloutIsCompleteWhenAllPodsAreAvailable(t *testing.T) {
	live := Text(Map{"kind": "StatefulSet", "spec": Map{"replicas": 3}, "status": Map{
		"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3,
	}})
	seen := &Observation{Children: []Child{{Identity: Reference{Kind: "StatefulSet"}, Live: live}}}
	if rollout := seen.Rollout("StatefulSet"); !rollout.IsComplete() {
		t.Errorf("got %+v", rollout)
	}
}
