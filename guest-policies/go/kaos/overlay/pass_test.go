package overlay

import (
	"testing"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

type plain struct{ refused error }

func (plain) Describe() kaos.Descriptor { return kaos.Descriptor{Name: "plain"} }

func (p plain) Amend(_ *kaos.Subject, below *kaos.Plan) (*kaos.Plan, error) {
	below.Notes = append(below.Notes, kaos.Note{Reason: "Seen"})
	return below, p.refused
}

func TestAnOverlayWithTwoMethodsAnswersEveryQuestion(t *testing.T) {
	p := pass{plain{}, &kaos.Subject{}}
	env, refused := p.mapEnv([]kaos.EnvVar{{Name: "A"}})
	if len(p.needs([]kaos.Found{{ID: "x"}})) != 0 || len(p.subject.Found) != 1 || len(env) != 1 || refused != nil {
		t.Error("the defaults need nothing and change no variable")
	}
	plan, refused := p.amend(kaos.Plan{GatesHold: true})
	if refused != nil || !plan.GatesHold || len(plan.Notes) != 1 {
		t.Errorf("got %+v, %v", plan, refused)
	}
}

func TestAnOverlayMayRefuse(t *testing.T) {
	p := pass{plain{kaos.Unsupported("no")}, &kaos.Subject{}}
	if _, refused := p.amend(kaos.Plan{}); refused != kaos.Refusal(kaos.Unsupported("no")) {
		t.Errorf("got %v", refused)
	}
}
