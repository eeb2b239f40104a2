package kaos

import "fmt"

const noList = "must be a list of variables"

// EachOnce keeps one definition of each variable of an `env` list: the last one, as in Kubernetes. It reports whether a
// variable had more than one definition.
func EachOnce(list []any) (kept []any, repeated bool) {
	definitions := make([]definition, len(list))
	for i, item := range list {
		members, _ := item.(Map)
		name, _ := members["name"].(string)
		text, _ := members["value"].(string)
		definitions[i] = definition{name, text}
	}
	kept = picked(list, order(definitions))
	return kept, len(kept) < len(list)
}

// CheckPatch checks the variables in a patch of a pod spec. `root` is the path of the patch in the object. Call it
// before the merge, because the merge moves items of lists and so changes their paths.
func CheckPatch(patch any, root string) error {
	var wrong Violations
	eachEnv(patch, func(_, at string, env any) {
		list, ok := env.([]any)
		if !ok {
			wrong.Add(root+"."+at, noList)
			return
		}
		for i, item := range list {
			// An item with the directive `$patch` deletes or replaces variables, and is not itself a variable.
			if members, _ := item.(Map); members["$patch"] == nil {
				variable(item, fmt.Sprintf("%s.%s[%d]", root, at, i), &wrong)
			}
		}
	})
	return wrong.Refusal()
}

// EnvOfPodSpec reads the final mapping from a pod spec after all merges. A variable that equals its entry in `known`
// keeps its origin. Every other variable comes from the patch, and gets the origin `patched`.
func EnvOfPodSpec(podSpec Map, known []EnvVar, patched string) ([]EnvVar, error) {
	var wrong Violations
	vars := make([]EnvVar, 0, len(known))
	eachEnv(podSpec, func(container, _ string, env any) {
		list, ok := env.([]any)
		if !ok {
			wrong.Add(patched, noList)
			return
		}
		before := map[string]EnvVar{}
		for _, variable := range known {
			if _, has := before[variable.Name]; variable.Container == container && !has {
				before[variable.Name] = variable
			}
		}
		for i, item := range list {
			name, source := variable(item, fmt.Sprintf("%s[%d]", patched, i), &wrong)
			if source == nil {
				continue
			}
			own := EnvVar{Container: container, Name: name, Source: source, Origin: patched}
			if same, has := before[name]; has && Text(listed(same)) == Text(listed(own)) {
				own.Origin = same.Origin
			}
			vars = append(vars, own)
		}
	})
	return vars, wrong.Refusal()
}

// eachEnv visits the `env` of each container of a pod spec, with the container's name and the path of `env`.
func eachEnv(podSpec any, visit func(container, at string, env any)) {
	members, _ := podSpec.(Map)
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers, _ := members[list].([]any)
		for i, item := range containers {
			container, _ := item.(Map)
			if env := container["env"]; env != nil {
				name, _ := container["name"].(string)
				visit(name, fmt.Sprintf("%s[%d].env", list, i), env)
			}
		}
	}
}
