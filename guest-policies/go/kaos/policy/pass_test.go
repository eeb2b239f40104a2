package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

type plain struct{ err error }

func (plain) Describe() kaos.Descriptor { return kaos.Descriptor{Name: "plain"} }

func (p plain) Translate(*kaos.Subject, []kaos.EnvVar) (*kaos.Plan, error) {
	if p.err != nil {
		return nil, p.err
	}
	return kaos.NewPlan(nil), nil
}

func TestAPolicyWithTwoMethodsAnswersEveryQuestion(t *testing.T) {
	p := pass{plain{}, &kaos.Subject{}}
	env, refused := p.mapEnv([]kaos.EnvVar{{Name: "A"}})
	if len(p.needs([]kaos.Found{{ID: "x"}})) != 0 || len(p.subject.Found) != 1 || len(env) != 1 || refused != nil {
		t.Error("the defaults need nothing and change no variable")
	}
	if _, refused := p.translate(env); refused != nil {
		t.Error(refused)
	}
	if report := p.assess(kaos.Observation{Outcome: kaos.Gated{}}); report.Phase != "Pending" {
		t.Errorf("got %+v", report)
	}
}

func TestARefusalMayBeWrappedAndAnyOtherErrorIsAMistakeOfThePolicy(t *testing.T) {
	p := pass{plain{fmt.Errorf("wrapped: %w", kaos.Unsupported("no"))}, &kaos.Subject{}}
	if _, refused := p.translate(nil); refused != kaos.Refusal(kaos.Unsupported("no")) {
		t.Errorf("got %v", refused)
	}
	defer func() {
		if told := fmt.Sprint(recover()); !strings.Contains(told, "no refusal: broken") {
			t.Errorf("got %s", told)
		}
	}()
	p.policy = plain{errors.New("broken")}
	p.translate(nil)
}
