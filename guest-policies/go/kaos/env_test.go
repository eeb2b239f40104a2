package kaos

import (
	"errors"
	"reflect"
	"testing"
)

func list(t *testing.T, text JSON) []any {
	t.Helper()
	list, ok := Parse(text).([]any)
	if !ok {
		t.Fatalf("%s is no list", text)
	}
	return list
}

func same(t *testing.T, got any, want JSON) {
	t.Helper()
	if text := Text(got); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestTheUsersVariablesWinOverVariablesBeforeAndAfterThem(t *testing.T) {
	env := EnvOver(nil)
	c := env.Container("c").Set("TOOLS", "params", "spec.params")
	user := list(t, `[{"name":"TOOLS","value":"user"},{"name":"LEVEL","value":"ERROR"},{"name":"NAME","value":"mine"}]`)
	if err := c.User(user, "spec.container.env"); err != nil {
		t.Fatal(err)
	}
	c.Set("NAME", "t", "metadata.name").Set("LEVEL", "INFO", "settings.logLevel").Set("LAST", "1", "x")
	same(t, ContainerEnv(env.Vars(), "c"), `[{"name":"TOOLS","value":"user"},{"name":"LEVEL","value":"ERROR"},`+
		`{"name":"NAME","value":"mine"},{"name":"LAST","value":"1"}]`)
	if origin := env.Vars()[2].Origin; origin != "spec.container.env[2]" {
		t.Errorf("got %s", origin)
	}
}

func TestTheUsersVariablesComeAfterThoseThatTheyReferTo(t *testing.T) {
	for user, want := range map[JSON]JSON{
		`[{"name":"Z","value":"$(NAME)"},{"name":"NAME","value":"mine"}]`: `[{"name":"NAME","value":"mine"},` +
			`{"name":"TEXT","value":"x"},{"name":"Z","value":"$(NAME)"},{"name":"LAST","value":"1"}]`,
		`[{"name":"Z","value":"1"},{"name":"NAME","value":"$(Z)"}]`: `[{"name":"TEXT","value":"x"},` +
			`{"name":"Z","value":"1"},{"name":"NAME","value":"$(Z)"},{"name":"LAST","value":"1"}]`,
	} {
		env := EnvOver(nil)
		c := env.Container("c").Set("NAME", "t", "metadata.name").Set("TEXT", "x", "spec.text")
		if err := c.User(list(t, user), "spec.env"); err != nil {
			t.Fatal(err)
		}
		c.Set("LAST", "1", "y")
		same(t, ContainerEnv(env.Vars(), "c"), want)
	}
}

func TestTextsAreEscapedAndLiteralSourcesAreExpandedByKubernetes(t *testing.T) {
	env := EnvOver(nil)
	env.Container("c").Set("A", "$(B) $$ $5", "a").Bind("C", Literal("$(A)"), "c")
	same(t, ContainerEnv(env.Vars(), "c"), `[{"name":"A","value":"$$(B) $$$ $5"},{"name":"C","value":"$(A)"}]`)
	for _, text := range []string{"", "costs $5", "$HOME and $", "a ${b} $", "(a)"} {
		if got := Unexpanded(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	for text, want := range map[string]string{"$$(A)": "$$$$(A)", "$$x $(": "$$$x $$(", "5$€ $é": "5$$€ $$é"} {
		if got := Unexpanded(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestReferencesAreThoseThatKubernetesReads(t *testing.T) {
	for text, want := range map[string][]string{
		"$(A) $$(B) $$$(C) $D $(E": {"A", "C"}, "$($(A)": {"$(A"}, "$$ $ ) $": nil,
	} {
		if got := references(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestALayerAboveReplacesInPlace(t *testing.T) {
	below := EnvOver(nil)
	below.Container("c").Set("A", "1", "a").Set("B", "2", "b").Hold("D", Literal("1"), "d").Set("D", "2", "e")
	above := EnvOver(below.Vars())
	above.Container("c").Set("A", "3", "overlay").Bind("C", SecretKey{Name: "s", Key: "k"}, "overlay").Remove("B")
	above.Container("other").SetSome("A", "", "overlay").SetSome("B", "x", "overlay")
	var got []string
	for _, variable := range above.Vars() {
		got = append(got, variable.Container+" "+variable.Name+" "+variable.Origin)
	}
	if want := []string{"c A overlay", "c D d", "c C overlay", "other B overlay"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestEverySourceSurvivesARoundTrip(t *testing.T) {
	const array = `[{"name":"A","value":"x"},{"name":"B"},` +
		`{"name":"C","valueFrom":{"secretKeyRef":{"key":"k","name":"s"}}},` +
		`{"name":"D","valueFrom":{"secretKeyRef":{"key":"k","name":"s","optional":true}}},` +
		`{"name":"E","valueFrom":{"configMapKeyRef":{"key":"k","name":"c"}}},` +
		`{"name":"F","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},` +
		`{"name":"G","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},` +
		`{"name":"H","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},` +
		`{"name":"I","valueFrom":{"secretKeyRef":{"key":"k","name":"s","optional":false}}}]`
	vars, err := variables("c", list(t, array), "spec.env")
	if err != nil {
		t.Fatal(err)
	}
	if got := vars[3].Source; got != (SecretKey{Name: "s", Key: "k", Optional: true}) {
		t.Errorf("got %+v", got)
	}
	if got := vars[5].Source; got != FieldPath("metadata.name") {
		t.Errorf("got %+v", got)
	}
	same(t, ContainerEnv(vars, "c"), array)
	same(t, ContainerEnv(vars, "other"), "[]")
}

func TestAllWrongEntriesAreNamed(t *testing.T) {
	_, err := variables("c", list(t, `[{"value":"x"},{"name":"A","value":1},{"name":"B","value":"x","valueFrom":{}},`+
		`{"name":"C=D"},"text",{"name":"E","valueFrom":[]}]`), "e")
	var invalid Invalid
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v", err)
	}
	var paths []string
	for _, violation := range invalid {
		paths = append(paths, violation.Path)
	}
	want := []string{"e[0].name", "e[1].value", "e[2].valueFrom", "e[3].name", "e[4].name", "e[5].valueFrom"}
	if !reflect.DeepEqual(paths, want) {
		t.Errorf("got %q", paths)
	}
}
