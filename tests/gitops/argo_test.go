package gitops

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// health is the health of an object according to Argo CD. A script must return both fields as strings: Argo CD fails on
// a value of another type.
type health struct {
	Status  string
	Message string
}

// customizations reads a patch from this file of deploy/argocd, and returns the patch's data. A user applies the patch
// to Argo CD's ConfigMap.
func customizations(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(root + "/deploy/argocd/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var patch struct{ Data map[string]string }
	if err := yaml.UnmarshalStrict(text, &patch); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return patch.Data
}

// everyKind returns the health script that applies to all kinds of KAOS. Argo CD accepts wildcards only in the value of
// the key `resource.customizations`.
func everyKind(t *testing.T) string {
	t.Helper()
	var overrides map[string]map[string]string
	text := customizations(t, "every-kind.yaml")["resource.customizations"]
	if err := yaml.UnmarshalStrict([]byte(text), &overrides); err != nil {
		t.Fatal(err)
	}
	return overrides["kaos.tools/*"]["health.lua"]
}

// eachKind returns the health scripts that apply to a single kind, by kind.
func eachKind(t *testing.T) map[string]string {
	t.Helper()
	scripts := map[string]string{}
	for key, script := range customizations(t, "each-kind.yaml") {
		kind, isOurs := strings.CutPrefix(key, "resource.customizations.health.kaos.tools_")
		if !isOurs {
			t.Fatalf("Argo CD does not know the key %s", key)
		}
		scripts[kind] = script
	}
	return scripts
}

// assess runs a health script as Argo CD does: without most of Lua's libraries, and for at most a second.
func assess(t *testing.T, script string, object map[string]any) health {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(limit)
	state.SetGlobal("obj", value(state, object))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	result, isTable := state.Get(-1).(*lua.LTable)
	if !isTable {
		t.Fatalf("the script does not return a table, but %s", state.Get(-1).Type())
	}
	var told health
	result.ForEach(func(key, value lua.LValue) {
		text, isText := value.(lua.LString)
		if !isText {
			t.Errorf("%s is no text, but %s", key, value.Type())
		}
		switch key.String() {
		case "status":
			told.Status = string(text)
		case "message":
			told.Message = string(text)
		default:
			t.Errorf("the result has a field %s", key)
		}
	})
	return told
}

func value(state *lua.LState, of any) lua.LValue {
	switch of := of.(type) {
	case bool:
		return lua.LBool(of)
	case string:
		return lua.LString(of)
	case int64:
		return lua.LNumber(of)
	case float64:
		return lua.LNumber(of)
	case []any:
		list := state.CreateTable(len(of), 0)
		for _, item := range of {
			list.Append(value(state, item))
		}
		return list
	case map[string]any:
		table := state.CreateTable(0, len(of))
		for field, inner := range of {
			table.RawSetString(field, value(state, inner))
		}
		return table
	}
	return lua.LNil
}

func TestArgoGivesTheStatedHealthByTheWildcardAndByEachKind(t *testing.T) {
	wildcard, kinds := everyKind(t), eachKind(t)
	for kind := range newStatuses(t) {
		if kinds[kind] == "" {
			t.Errorf("%s has no health check", kind)
		}
	}
	for _, one := range all(t) {
		scripts := []string{wildcard}
		if script, isThere := kinds[one.Object.GetKind()]; isThere {
			scripts = append(scripts, script)
		}
		for _, script := range scripts {
			told := assess(t, script, one.Object.Object)
			if told.Status != one.Argo {
				t.Errorf("%s: Argo CD says %s (%s), and not %s", one.Name, told.Status, told.Message, one.Argo)
			}
			if stalled := condition(one.Object, "Stalled"); told.Status == "Degraded" && told.Message != stalled["message"] {
				t.Errorf("%s: Argo CD does not show our message, but %q", one.Name, told.Message)
			}
		}
	}
}

func TestArgoWaitsForAnObjectWithoutAStatus(t *testing.T) {
	object := map[string]any{"metadata": map[string]any{"generation": int64(1)}}
	if told := assess(t, everyKind(t), object); told.Status != "Progressing" {
		t.Errorf("Argo CD says %s", told.Status)
	}
}
