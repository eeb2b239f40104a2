package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos/kaostest"
)

func subject(spec kaos.Map) kaostest.SubjectBuilder {
	metadata := kaos.Map{"name": "tools", "namespace": "team"}
	object := kaos.Map{"apiVersion": apiVersion, "kind": "MCPServer", "metadata": metadata, "spec": spec}
	return kaostest.Subject(object).Defaults(schema)
}

func TestARuntimeOfTheSettingsStartsWithItsImageAndItsParameters(t *testing.T) {
	plan, err := kaostest.Plan(MCPServer{}, subject(kaos.Map{"runtime": "python-string", "params": "def $(f)(): pass"}).Build())
	if err != nil {
		t.Fatal(err)
	}
	want := kaos.EnvVar{
		Container: "mcp-server", Name: "MCP_TOOLS_STRING", Source: kaos.Literal("def $$(f)(): pass"), Origin: "spec.params",
	}
	if plan.Env[0] != want {
		t.Errorf("got %+v", plan.Env)
	}
	pod := kaostest.Manifest(t, plan, "Deployment").Object("spec", "template", "spec")
	main, _ := pod.List("containers")[0].(kaos.Map)
	if image, _ := main["image"].(string); !strings.Contains(image, "mcp-python-string") {
		t.Errorf("got %s", image)
	}
}

func TestTheRegistryOfTheClusterReplacesTheRuntimesOfTheSettings(t *testing.T) {
	registry := kaos.Map{"data": kaos.Map{"runtimes.yaml": "runtimes:\n  own: {image: own:1, args: [--port, 8000]}\n"}}
	plan, err := kaostest.Plan(MCPServer{}, subject(kaos.Map{"runtime": "own"}).Found(registryID, registry).Build())
	if err != nil {
		t.Fatal(err)
	}
	pod := kaostest.Manifest(t, plan, "Deployment").Object("spec", "template", "spec")
	main, _ := pod.List("containers")[0].(kaos.Map)
	if !reflect.DeepEqual(main["args"], []any{"--port", "8000"}) {
		t.Errorf("got %v", main["args"])
	}
	_, err = kaostest.Plan(MCPServer{}, subject(kaos.Map{"runtime": "slack"}).Found(registryID, registry).Build())
	if err == nil || !strings.Contains(err.Error(), "use a runtime of the registry (own), or custom") {
		t.Errorf("got %v", err)
	}
}

func TestAMalformedRegistryIsRefusedWithPlaceAndReason(t *testing.T) {
	for text, want := range map[string]string{
		"runtimes: [":                       "yaml: ",
		"- a":                               "it must be a mapping",
		"a: {image: '\x7f'}":                "control characters are not allowed",
		"a: {? [b] : c}":                    "line 1, column 7: a key must be plain text",
		"a: &x {b: *x}":                     "this alias has no anchor before it",
		"a: {image: b, image: c}":           `the key "image" occurs twice`,
		"a: {<<: b}":                        "<< takes an object",
		"a: {image: [1]}":                   "runtimes.a.image: must be a string",
		"a: {args: [~]}":                    "runtimes.a.args[0]: must be a string, not null",
		"a: {paramsEnvVar: 'P=', tools: b}": "runtimes.a.tools: must be a list",
		"a: {paramsEnvVar: 'P='}":           "runtimes.a.paramsEnvVar: a variable's name",
		strings.Repeat("#", 150_001):        "it has 150001 bytes, but the limit is 150000",
		"#" + strings.Repeat("é", 75_000):   "it has 150001 bytes",
	} {
		registry := kaos.Map{"data": kaos.Map{"runtimes.yaml": text}}
		_, err := kaostest.Plan(MCPServer{}, subject(kaos.Map{"runtime": "a"}).Found(registryID, registry).Build())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v", text, err)
		}
	}
}

func TestThePathOfARuntimeWithADotIsInQuotes(t *testing.T) {
	_, err := registry{"my.own": kaos.Map{"image": []any{}}}.entry("my.own")
	if err == nil || !strings.HasPrefix(err.Error(), `runtimes["my.own"].image: must be a string`) {
		t.Errorf("got %v", err)
	}
}

func TestAliasesAndMergeKeysOfARegistryWork(t *testing.T) {
	text := "base: &b {image: b:1, args: [x]}\nown: {<<: *b, image: own:1}\nmany: {<<: [{args: [y]}, *b]}\nl0: &l0 [a]\n"
	for n := 1; n < 60; n++ {
		text += fmt.Sprintf("l%d: &l%d [*l%d, *l%d, *l%d]\n", n, n, n-1, n-1, n-1)
	}
	read, err := parseRegistry(text)
	if err != nil {
		t.Fatal(err)
	}
	want := kaos.Map{"image": "own:1", "args": []any{"x"}}
	if !reflect.DeepEqual(read["own"], want) {
		t.Errorf("got %v", read["own"])
	}
	want = kaos.Map{"image": "b:1", "args": []any{"y"}}
	if !reflect.DeepEqual(read["many"], want) {
		t.Errorf("got %v", read["many"])
	}
}

func TestOnlyFunctionsAtTopLevelAreTools(t *testing.T) {
	source := "def a():\n  def inner(): pass\n'''\ndef text(): pass\n'''\nasync def b ( x ): pass\nx = (\ndef no(): 1)\n# def c():\ndef a(): pass\n"
	if got := topLevelFunctions(source); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
}

func TestALongTimeoutIsSpelledForTheGateway(t *testing.T) {
	for text, want := range map[string]string{"30s": "30s", "100000s": "27h46m40s", "000000s": "0s", "1h30m": "1h30m"} {
		if got, err := forGateway(text); err != nil || got != want {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	for text, want := range map[string]error{
		"": errNoTimeout, "5": errNoTimeout, "1d": errNoTimeout, "1h1m1s1ms1h": errNoTimeout, "100000h": errTooLong,
		"99999999999999999999s": errTooLong,
	} {
		if _, err := forGateway(text); err != want {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestAddressesOfServicesAreRead(t *testing.T) {
	name, namespace, port := service("http://pdp.kaos.svc.cluster.local:9191/path")
	if name != "pdp" || namespace != "kaos" || port != 9191 || namespaceOf("https://a.b.svc/x") != "b" {
		t.Errorf("got %s %s %d", name, namespace, port)
	}
	for _, other := range []string{"pdp", "pdp.kaos.svc", "a.b.com:80", "pdp.kaos:x"} {
		if name, _, _ := service(other); name != "" {
			t.Errorf("%s is no address of a Service", other)
		}
	}
}
