package kaos

// Manifest is a child of a plan: an object, and the origins of its values.
type Manifest struct {
	Object  any
	origins [][2]string
}

// NewManifest makes a child from any value that has a JSON form: a [Map], or a type of a Kubernetes library.
func NewManifest(object any) *Manifest { return &Manifest{Object: object} }

// Origin sets the origin of the value at `path` of the manifest and of all values below it: a field of the object
// ("spec.podSpec"), a setting ("settings.image"), or a field of a found object ("ModelAPI/llm status.endpoint").
func (m *Manifest) Origin(path, source string) *Manifest {
	m.origins = append(m.origins, [2]string{path, source})
	return m
}

// NewPlan makes a plan from the final mapping and the children. Set further fields of the result: gates, notes, kept.
func NewPlan(env []EnvVar, children ...*Manifest) *Plan {
	plan := &Plan{Env: env}
	for i, child := range children {
		plan.Manifests = append(plan.Manifests, Text(child.Object))
		for _, origin := range child.origins {
			plan.Origins = append(plan.Origins, Origin{Manifest: uint32(i), Path: origin[0], From: origin[1]})
		}
	}
	return plan
}

// Debug adds a note with a value, because a policy cannot print. `kaos-operator render` prints the note.
func (p *Plan) Debug(name string, value any) {
	p.Notes = append(p.Notes, Note{Reason: "Debug", Message: name + " = " + string(Text(value))})
}
