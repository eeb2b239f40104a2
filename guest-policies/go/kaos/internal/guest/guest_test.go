package guest

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

type described kaos.Descriptor

func (d described) Describe() kaos.Descriptor { return kaos.Descriptor(d) }

func TestASchemaIsCanonicalAndAPolicyWithoutASchemaHasNoSettings(t *testing.T) {
	if schema := Describe(described{}).SettingsSchema; schema != NoSettings {
		t.Errorf("got %s", schema)
	}
	if schema := Describe(described{SettingsSchema: `{"b": 1, "a": 2}`}).SettingsSchema; schema != `{"a":2,"b":1}` {
		t.Errorf("got %s", schema)
	}
}

func TestAMissingPlanIsAMistakeThatNamesTheMethod(t *testing.T) {
	defer func() {
		if told, _ := recover().(string); told != "Amend returned neither a plan nor a refusal" {
			t.Errorf("got %q", told)
		}
	}()
	Plan("Amend", nil, nil)
}

func TestAPanicLeavesItsTextAndItsPlace(t *testing.T) {
	func() {
		defer func() { leave(recover()) }()
		var none []int
		_ = none[len(words)]
	}()
	at := -uintptr(unsafe.Pointer(&words)) & 15
	record := string(words[at:])
	if !strings.HasPrefix(record, "kaos:last-"+"words:") || !strings.Contains(record, "guest_test.go:") {
		t.Errorf("got %q", record)
	}
	if !strings.Contains(record, "index out of range") || (uintptr(unsafe.Pointer(&words))+at)%16 != 0 {
		t.Errorf("got %q", record)
	}
}
