package kaos

import (
	"errors"
	"strings"
	"testing"
)

func TestTextIsCanonical(t *testing.T) {
	type own struct {
		B string `json:"b"`
		A *int   `json:"a,omitempty"`
	}
	same(t, Map{"b": []any{nil, true, 1, "<é>&\u2028\x01\n\"\\"}, "a": Map{}}, `{"a":{},"b":[null,true,1,"<é>&`+"\u2028"+`\u0001\n\"\\"]}`)
	same(t, []Map{{"z": own{B: "<"}, "y": []string{"x"}, "x": uint16(7), "w": map[string]string{"k": "v"}}},
		`[{"w":{"k":"v"},"x":7,"y":["x"],"z":{"b":"<"}}]`)
	same(t, Parse(`{"big":9007199254740993,"f":1.50}`), `{"big":9007199254740993,"f":1.50}`)
	same(t, JSON(`{"b": 1, "a": 2}`), `{"a":2,"b":1}`)
	if Parse("{") != nil {
		t.Error("this is no JSON")
	}
}

func TestAnObjectOfAnotherShapeReadsAsEmpty(t *testing.T) {
	for _, text := range []JSON{"", "{", "5", "[]", `{"metadata":[]}`, `{"status":{"conditions":{}}}`} {
		object := ParseObject(text)
		if object.Name() != "" || object.Generation() != 0 || object.Condition("Ready").Exists() {
			t.Errorf("%s: got %+v", text, object)
		}
	}
	object := ParseObject(`{"metadata":{"generation":3},"status":{"conditions":[5,{"type":"Ready","status":"True"}]}}`)
	if object.Generation() != 3 || object.Condition("Ready").String("status") != "True" {
		t.Errorf("got %+v", object)
	}
}

func TestAWrongFieldIsRefusedWithItsPath(t *testing.T) {
	subject := &Subject{Object: `{"spec":{"ports":[{"port":"x"}]}}`, Settings: `{"image":5}`}
	var spec struct {
		Ports []struct {
			Port uint16 `json:"port"`
		} `json:"ports"`
	}
	var settings struct {
		Image string `json:"image"`
	}
	for want, err := range map[string]error{
		"spec.ports[0].port: must be a whole number from 0 to 65535, not string \"x\"": subject.Read("spec", &spec),
		"settings.image: must be a string, not integer `5`":                            subject.ReadSettings(&settings),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := subject.Read("other", &spec); err != nil {
		t.Errorf("a missing member is no mistake: %v", err)
	}
}

func TestAMissingObjectHasAReason(t *testing.T) {
	subject := &Subject{}
	subject.Add([]Found{
		{ID: "there", Answer: Objects{`{"kind":"A"}`}}, {ID: "absent", Answer: Objects{}}, {ID: "none", Answer: Unserved{}},
		{ID: "no", Answer: Forbidden("why")}, {ID: "secret", Answer: Secret{Present: true, Keys: []string{"k"}}},
	})
	if object, err := subject.One("there"); err != nil || object.Kind() != "A" {
		t.Errorf("got %v", err)
	}
	if facts, err := subject.Secret("secret"); err != nil || facts.Keys[0] != "k" {
		t.Errorf("got %v", err)
	}
	on := Reference{APIVersion: "v1", Kind: "ConfigMap", Name: "c"}
	for id, reason := range map[string]string{
		"absent": "NotFound", "none": "Unserved", "no": "Forbidden", "secret": "Forbidden", "unasked": "NotFound",
	} {
		_, err := subject.One(id)
		if got := BlockedBy(on, err).Reason; got != reason {
			t.Errorf("%s: got %s", id, got)
		}
	}
}

func TestMistakesAreCollectedAndOtherRefusalsEndTheChecks(t *testing.T) {
	var wrong Violations
	if wrong.Refusal() != nil || !wrong.Require(true, "a", "b") || wrong.Require(false, "a", "b") {
		t.Error("Require adds the mistake unless it holds")
	}
	if err := wrong.Collect(Invalid{{Path: "c", Message: "d"}}); err != nil {
		t.Error(err)
	}
	if err := wrong.Collect(Unsupported("no")); err == nil {
		t.Error("this refusal is no mistake of the user")
	}
	var refusal Refusal
	if err := wrong.Refusal(); !errors.As(err, &refusal) || err.Error() != "a: b; c: d" {
		t.Errorf("got %v", err)
	}
}

func TestAPlanKnowsTheOriginsOfItsManifests(t *testing.T) {
	plan := NewPlan(nil, NewManifest(Map{"kind": "A"}), NewManifest(Map{"kind": "B"}).Origin("spec.type", "settings.type"))
	if plan.Origins[0] != (Origin{Manifest: 1, Path: "spec.type", From: "settings.type"}) || plan.Manifests[0] != `{"kind":"A"}` {
		t.Errorf("got %+v", plan)
	}
	plan.Debug("pods", 3)
	if plan.Notes[0].Message != "pods = 3" {
		t.Errorf("got %+v", plan.Notes)
	}
}

func TestNeedsAreEasyToWrite(t *testing.T) {
	need := NeedOf("x", "v1", "ConfigMap", "c").Reading("spec.mode", Key("data", `a."b"`), Equal("spec.models", "x/y"),
		Items("status.conditions", "type", "Ready")).IfPresent()
	want := `spec.mode data["a.\"b\""] spec.models[="x/y"] status.conditions[type="Ready"]`
	if got := strings.Join(need.Fields, " "); got != want || !need.Optional {
		t.Errorf("got %s", got)
	}
	all := NeedAll("pods", "v1", "Pod", map[string]string{"tier": "b", "app": "a"}).Target.(Labelled)
	if all.Labels[0] != [2]string{"app", "a"} || all.Labels[1] != [2]string{"tier", "b"} {
		t.Errorf("got %v", all.Labels)
	}
}

func TestNamesAreCheckedWithTheRulesOfAnAPIServer(t *testing.T) {
	for _, good := range []string{"a", "a-1", "a1"} {
		if DNS1035Label(good)+DNS1123Label(good)+DNS1123Subdomain(good) != "" {
			t.Errorf("%s is a name", good)
		}
	}
	for _, bad := range []string{"", "A", "a-", "-a", "a_b", "é", strings.Repeat("a", 64)} {
		if DNS1035Label(bad) == "" || DNS1123Label(bad) == "" {
			t.Errorf("%s is no name", bad)
		}
	}
	if DNS1123Label("1a") != "" || DNS1035Label("1a") == "" || DNS1123Subdomain("a.b-c.1d") != "" || DNS1123Subdomain("a..b") == "" {
		t.Error("a name of a Service begins with a letter, and a name of an object has parts")
	}
	if got := Shorten("abcdefghijklmnopqrstuvwxyz", 20); got != "abcdefghijk-49935c13" {
		t.Errorf("the hash differs from that of the other SDKs: %s", got)
	}
}

func TestEveryShapeOfAnObjectIsDecoded(t *testing.T) {
	type inner struct {
		Name string `json:"name"`
	}
	var into struct {
		inner
		Inner
		Number  int32            `json:"number"`
		Ratio   float64          `json:"ratio"`
		On      *bool            `json:"on"`
		Labels  map[string]inner `json:"labels"`
		Any     any              `json:"any"`
		Default string           `json:"default"`
		Skipped func()           `json:"-"`
		Cost    quantity         `json:"cost"`
		Upper   string
	}
	into.Default = "stays"
	value := Parse(`{"kind":"K","number":-5,"ratio":1.5,"on":true,"labels":{"a.b":{"name":"x"}},"any":[1],"default":null,
		"cost":"5m","Upper":"u","upper":"ignored"}`)
	if err := decode(value, &into, "spec"); err != nil {
		t.Fatal(err)
	}
	same(t, Map{"kind": into.Kind, "number": into.Number, "on": *into.On, "name": into.Labels["a.b"].Name, "any": into.Any,
		"default": into.Default, "cost": string(into.Cost), "upper": into.Upper},
		`{"any":[1],"cost":"read 5m","default":"stays","kind":"K","name":"x","number":-5,"on":true,"upper":"u"}`)
	for text, want := range map[JSON]string{
		`{"number":3000000000}`:          "spec.number: must be a whole number from -2147483648 to 2147483647, not integer `3000000000`",
		`{"number":1.5}`:                 "spec.number: must be a whole number from -2147483648 to 2147483647, not floating point `1.5`",
		`{"ratio":"x"}`:                  `spec.ratio: must be a number, not string "x"`,
		`{"on":"yes\n"}`:                 `spec.on: must be a boolean, not string "yes\n"`,
		`{"labels":[]}`:                  "spec.labels: must be an object, not a list",
		`{"labels":{"a.b":{"name":{}}}}`: `spec.labels["a.b"].name: must be a string, not an object`,
		`{"cost":true}`:                  "spec.cost: cannot be read: no quantity",
		`5`:                              "spec: must be an object, not integer `5`",
	} {
		if err := decode(Parse(text), &into, "spec"); err == nil || err.Error() != want {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

type Inner struct {
	Kind string `json:"kind"`
}

type quantity string

func (q *quantity) UnmarshalJSON(text []byte) error {
	own, ok := Parse(JSON(text)).(string)
	if !ok {
		return errors.New("no quantity")
	}
	*q = quantity("read " + own)
	return nil
}

func TestTextsOfUsersAreShownOnOneLineAndQuotedForAShell(t *testing.T) {
	if got := Shown("a\nb\t\x1b[31m\u202e\"\\", 99); got != `a\nb\t\u{1b}[31m\u{202e}\"\\` {
		t.Errorf("got %s", got)
	}
	if got := Shown("äbc", 2); got != "äb" {
		t.Errorf("got %s", got)
	}
	for text, want := range map[string]string{"a-b==1.0": "'a-b==1.0'", "a_b": "a_b", "": "''", "it's": `'it'\''s'`} {
		if got := ShellWord(text); got != want {
			t.Errorf("%q: got %s", text, got)
		}
	}
}

func TestTheFinalMappingKeepsOriginsAndNamesThePatchForTheOtherVariables(t *testing.T) {
	known := []EnvVar{{"c", "A", Literal("1"), "settings.a"}, {"c", "B", Literal("2"), "settings.b"}}
	spec, _ := Parse(`{"initContainers":[{"name":"i","env":[{"name":"A","value":"1"}]}],
		"containers":[{"name":"c","env":[{"name":"B","value":"3"},{"name":"A","value":"1"}]},{"name":"d"}]}`).(Map)
	vars, err := EnvOfPodSpec(spec, known, "spec.podSpec")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, variable := range vars {
		got = append(got, variable.Container+variable.Name+" "+variable.Origin)
	}
	if text := strings.Join(got, ", "); text != "iA spec.podSpec, cB spec.podSpec, cA settings.a" {
		t.Errorf("got %s", text)
	}
	wrong := Parse(`{"containers":[{"name":"a","env":[{"$patch":"replace"},{"name":"B","value":1}]},{"name":"b","env":"x"}]}`)
	err = CheckPatch(wrong, "spec.podSpec")
	want := "spec.podSpec.containers[0].env[1].value: must be text; put it into quotes; spec.podSpec.containers[1].env: " + noList
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	kept, repeated := EachOnce([]any{Map{"name": "A"}, 5, Map{"name": "A", "value": "1"}})
	if !repeated || Text(kept) != `[{"name":"A","value":"1"},5]` {
		t.Errorf("got %v", kept)
	}
}
