package main

import (
	"strings"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

const (
	// pythonString is the runtime with Python source in `params`.
	pythonString = "python-string"
	// custom is the runtime without an entry in the registry. A server with this runtime runs the user's own image.
	custom = "custom"
	// deprecatedReason is the reason of every note on an older field, and the type of the condition.
	deprecatedReason = "Deprecated"
)

// Spec is the spec of an MCPServer, with all older fields.
type Spec struct {
	Runtime            string     `json:"runtime"`
	Params             string     `json:"params"`
	ServiceAccountName string     `json:"serviceAccountName"`
	Telemetry          *Telemetry `json:"telemetry"`
	Container          *Container `json:"container"`
	Replicas           *int32     `json:"replicas"`
	Type               *string    `json:"type"`
	Config             Config     `json:"config"`
	Resources          any        `json:"resources"`
}

// Container is the part of the container that the policy reads before the merge.
type Container struct {
	Image     string      `json:"image"`
	Command   *[]string   `json:"command"`
	Args      *[]string   `json:"args"`
	Env       []namedItem `json:"env"`
	Resources any         `json:"resources"`
}

type namedItem struct {
	Name string `json:"name"`
}

// Telemetry is the telemetry of one object.
type Telemetry struct {
	Enabled  *bool  `json:"enabled"`
	Endpoint string `json:"endpoint"`
}

// Config is `spec.config`, the older field for the tools, the variables and the telemetry.
type Config struct {
	MCP         string `json:"mcp"`
	ToolsString string `json:"toolsString"`
	Tools       struct {
		FromPackage      string     `json:"fromPackage"`
		FromString       string     `json:"fromString"`
		FromSecretKeyRef *secretKey `json:"fromSecretKeyRef"`
	} `json:"tools"`
	Env       []namedItem `json:"env"`
	Telemetry *Telemetry  `json:"telemetry"`
}

type secretKey struct {
	Name     string `json:"name"`
	Key      string `json:"key"`
	Optional bool   `json:"optional"`
}

// source is the program that the server runs: a runtime of the registry, a Python package, or the user's own image.
type source struct {
	runtime           string
	packageName, path string
}

// params are the parameters of the runtime: a text or a key of a Secret.
type params struct {
	text   string
	secret *secretKey
	path   string
}

func (p *params) source() kaos.EnvSource {
	if p.secret != nil {
		return kaos.SecretKey(*p.secret)
	}
	return kaos.Literal(kaos.Unexpanded(p.text))
}

// wanted is an MCPServer after the policy has replaced older fields with current fields.
type wanted struct {
	source        source
	params        *params
	telemetry     *Telemetry
	telemetryPath string
	notes         []kaos.Note
}

func wantedOf(spec *Spec) (*wanted, error) {
	w := &wanted{telemetry: spec.Telemetry, telemetryPath: "spec.telemetry"}
	config := &spec.Config
	if spec.Type != nil {
		w.older("spec.type", "spec.runtime", spec.Runtime != "")
	}
	w.olderEnv(spec)
	if spec.Resources != nil {
		w.older("spec.resources", "spec.container.resources", spec.Container != nil && spec.Container.Resources != nil)
	}
	written := sources(config)
	newer := ""
	if spec.Runtime != "" {
		newer = "spec.runtime"
	} else if len(written) > 0 {
		newer = written[0].path
	}
	packaged := w.packageOf(config, newer)
	if spec.Params != "" {
		w.params = &params{text: spec.Params, path: "spec.params"}
	}
	w.olderSources(written, w.params)
	switch {
	case spec.Runtime == custom:
	case spec.Runtime != "":
		w.source.runtime = spec.Runtime
	case len(written) > 0:
		// Python source wins over a package, as in the Go operator.
		w.source.runtime = pythonString
	case packaged.packageName != "" && spec.Type != nil && *spec.Type == "node-runtime":
		return nil, kaos.Invalid{{Path: packaged.path, Message: "packages of type node-runtime come from npm, which is not " +
			"supported: use runtime custom with container.image"}}
	case packaged.packageName != "":
		w.source = packaged
	default:
		return nil, kaos.Invalid{{Path: "spec.runtime", Message: "a runtime is required: name one from the registry, or " +
			"custom with container.image"}}
	}
	if config.Telemetry != nil {
		w.older("spec.config.telemetry", "spec.telemetry", spec.Telemetry != nil)
		if spec.Telemetry == nil {
			w.telemetry, w.telemetryPath = config.Telemetry, "spec.config.telemetry"
		}
	}
	if w.params == nil && len(written) > 0 {
		w.params = written[0]
	}
	return w, nil
}

// packageOf reads the package from the oldest fields. `newer` is the path of a newer field that wins, or empty.
func (w *wanted) packageOf(config *Config, newer string) source {
	var found source
	for _, field := range []source{
		{packageName: config.Tools.FromPackage, path: "spec.config.tools.fromPackage"},
		{packageName: config.MCP, path: "spec.config.mcp"},
	} {
		if field.packageName == "" {
			continue
		}
		switch {
		case newer != "":
			w.ignored(field.path, newer)
		case found.path != "":
			w.ignored(field.path, found.path)
		default:
			w.deprecated(field.path, "a runtime of the registry, or spec.runtime custom with container.image")
			found = field
		}
		if found.path == "" {
			found = field
		}
	}
	return found
}

// sources returns the Python sources in the older fields. The policy uses the first one.
func sources(config *Config) []*params {
	var all []*params
	for _, text := range []params{
		{text: config.Tools.FromString, path: "spec.config.tools.fromString"},
		{text: config.ToolsString, path: "spec.config.toolsString"},
	} {
		if text.text != "" {
			all = append(all, &text)
		}
	}
	if key := config.Tools.FromSecretKeyRef; key != nil {
		all = append(all, &params{secret: key, path: "spec.config.tools.fromSecretKeyRef"})
	}
	return all
}

func (w *wanted) olderSources(written []*params, own *params) {
	for i, params := range written {
		counts := own
		if counts == nil && i > 0 {
			counts = written[0]
		}
		switch {
		case counts != nil:
			w.ignored(params.path, counts.path)
		case params.secret == nil:
			w.deprecated(params.path, "spec.runtime python-string with spec.params")
		default:
			w.deprecated(params.path, "spec.runtime python-string, and MCP_TOOLS_STRING in spec.container.env")
		}
	}
}

// olderEnv adds a note on the variables in the older field. If the container sets all their names, they have no effect.
func (w *wanted) olderEnv(spec *Spec) {
	if len(spec.Config.Env) == 0 {
		return
	}
	newer := map[string]bool{}
	if spec.Container != nil {
		for _, variable := range spec.Container.Env {
			newer[variable.Name] = true
		}
	}
	isIgnored := true
	for _, variable := range spec.Config.Env {
		isIgnored = isIgnored && newer[variable.Name]
	}
	w.older("spec.config.env", "spec.container.env", isIgnored)
}

func (w *wanted) older(old, newer string, isSet bool) {
	if isSet {
		w.ignored(old, newer)
	} else {
		w.deprecated(old, newer)
	}
}

func (w *wanted) deprecated(old, now string) {
	w.note(old, old+" is an older field and still works: use "+now)
}

func (w *wanted) ignored(old, newer string) {
	w.note(old, old+" is an older field and is ignored, since "+newer+" is set: remove it")
}

func (w *wanted) note(path, message string) {
	w.notes = append(w.notes, warning(path, deprecatedReason, message))
}

func warning(path, reason, message string) kaos.Note {
	return kaos.Note{Severity: kaos.SeverityWarning, Reason: reason, Message: message, Path: path}
}

// deprecatedCondition returns the condition that lists the notes on older fields. Without such notes, it returns none.
func deprecatedCondition(notes []kaos.Note) []kaos.Condition {
	var messages []string
	for _, note := range notes {
		if note.Reason == deprecatedReason {
			messages = append(messages, note.Message)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return []kaos.Condition{condition(deprecatedReason, kaos.TruthYes, "OlderFields", strings.Join(messages, "; "))}
}

func condition(of string, status kaos.Truth, reason, message string) kaos.Condition {
	return kaos.Condition{Type: of, Status: status, Reason: reason, Message: message}
}
