package gitops

import (
	"testing"

	flux "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	kpt "sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// Flux and Helm use a fork of kpt's library kstatus, so the test runs both libraries.
func TestFluxHelmAndKptGiveTheStatedVerdicts(t *testing.T) {
	for _, one := range all(t) {
		byKpt, err := kpt.Compute(one.Object)
		if err != nil {
			t.Errorf("%s: %v", one.Name, err)
			continue
		}
		byFlux, err := flux.Compute(one.Object)
		if err != nil {
			t.Errorf("%s: %v", one.Name, err)
			continue
		}
		if byKpt.Status.String() != one.Kstatus || byFlux.Status.String() != one.Kstatus {
			t.Errorf("%s: kpt says %s (%s), Flux says %s (%s), and not %s",
				one.Name, byKpt.Status, byKpt.Message, byFlux.Status, byFlux.Message, one.Kstatus)
		}
		if stalled := condition(one.Object, "Stalled"); byFlux.Status == flux.FailedStatus && byFlux.Message != stalled["message"] {
			t.Errorf("%s: Flux does not show our message, but %q", one.Name, byFlux.Message)
		}
	}
}
