package patch

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// These types occur only in the test vectors.
var (
	withConditions = typ{fields: map[string]rule{"conditions": list("type", &plain)}}

	deployment = typ{fields: map[string]rule{
		"metadata": object(&metadata),
		"spec": object(&typ{fields: map[string]rule{
			"strategy": object(&byType),
			"template": object(&typ{fields: map[string]rule{"metadata": object(&metadata), "spec": object(&podSpec)}}),
		}}),
		"status": object(&withConditions),
	}}

	service = typ{fields: map[string]rule{
		"metadata": object(&metadata),
		"spec":     object(&typ{fields: map[string]rule{"ports": list("port", &plain)}}),
		"status":   object(&withConditions),
	}}
)

// tidy removes the directives and nulls that Go's strategicpatch leaves in a value.
func tidy(value any) any {
	switch value := value.(type) {
	case kaos.Map:
		for key, member := range value {
			if isDirective(key) || member == nil {
				delete(value, key)
			} else {
				value[key] = tidy(member)
			}
		}
	case []any:
		for i, item := range value {
			value[i] = tidy(item)
		}
	}
	return value
}

func TestEveryVectorGivesTheResultOfGoExceptForListedDeviations(t *testing.T) {
	text, err := os.ReadFile("../../../sdk/tests/data/strategic-merge.json")
	if err != nil {
		t.Fatal(err)
	}
	vectors, _ := kaos.Parse(kaos.JSON(text)).([]any)
	if len(vectors) < 100 {
		t.Fatalf("got %d vectors", len(vectors))
	}
	schemas := map[any]*typ{"PodSpec": &podSpec, "Container": &container, "Deployment": &deployment, "Service": &service}
	for _, item := range vectors {
		vector := item.(kaos.Map)
		base, _ := vector["base"].(kaos.Map)
		if base == nil {
			base = kaos.Map{}
		}
		var ours any
		merged, err := merger{}.run(base, vector["patch"], schemas[vector["schema"]], "")
		if err == nil {
			ours = merged
		}
		wanted := tidy(vector["merged"])
		if _, deviates := vector["deviation"]; deviates {
			wanted = vector["ours"]
		}
		if got, want := kaos.Text(ours), kaos.Text(wanted); got != want {
			t.Errorf("%s:\n got %s\nwant %s", vector["name"], got, want)
		}
	}
}

func TestMistakesAreNamedWithTheirPath(t *testing.T) {
	const base = `{"containers":[{"name":"a","env":[{"name":"A"}]}]}`
	for patch, want := range map[kaos.JSON]string{
		`{"containers":[{"image":"x"}]}`:                      "p.containers[0]: each item needs the field name",
		`{"containers":["x"]}`:                                "p.containers[0]: must be an object",
		`{"containers":[{"name":"a","env":[{"value":"x"}]}]}`: "p.containers[0].env[0]: each item needs the field name",
		`{"containers":[{"name":"a","$patch":"x"}]}`:          "p.containers[0].$patch: $patch must be delete",
		`{"$retainKeys":["a"],"b":1}`:                         "p.$retainKeys: $retainKeys must list every field",
		`{"containers":[{"name":"a","$patch":"merge"}]}`:      "p.containers[0]: $patch: merge is not possible",
		`[]`: "p: must be an object",
		`{"volumes":[{"name":"v","emptyDir":{},"hostPath":{}}]}`: "p.volumes[0].hostPath: must not be set together with emptyDir",
	} {
		members, _ := kaos.Parse(base).(kaos.Map)
		if _, err := PodSpec(members, kaos.Parse(patch), "a", "p"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", patch, err)
		}
	}
}

func TestMembersThatExcludeEachOtherReplaceEachOtherAndThePolicysContainerStaysFirst(t *testing.T) {
	base, _ := kaos.Parse(`{"containers":[{"name":"a","livenessProbe":{"httpGet":{"port":1},"periodSeconds":3}}]}`).(kaos.Map)
	patch := kaos.Parse(`{"containers":[{"name":"b","image":"b"}],"initContainers":[{"name":"c"}]}`)
	merged, err := PodSpec(base, patch, "a", "spec.podSpec")
	if err != nil || nameOf(merged["containers"].([]any)[0]) != "a" {
		t.Fatalf("got %v, %v", merged, err)
	}
	own := merged["containers"].([]any)[0].(kaos.Map)
	own, err = Container(own, kaos.Parse(`{"livenessProbe":{"tcpSocket":{"port":2}}}`), "spec.container")
	want := kaos.Parse(`{"name":"a","livenessProbe":{"tcpSocket":{"port":2},"periodSeconds":3}}`)
	if err != nil || !reflect.DeepEqual(any(own), want) {
		t.Errorf("got %v, %v", own, err)
	}
}
