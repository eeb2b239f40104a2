// Package patch applies strategic merge patches to JSON, with the merge keys of pod specs and containers.
//
// The merge follows Go's strategicpatch, including the order of lists. It gives the same result as the library in Rust.
// Three rules are additional. A member of the patch removes the members of the base that it excludes. The merge refuses
// a patch with two members that exclude each other. The policy's own container stays first if the patch only adds
// containers. The result never contains a directive or a null.
package patch

import (
	"slices"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// PodSpec merges the user's partial pod spec into the policy's pod spec, and can change `base`. `own` is the name of
// the policy's container, which stays first unless the patch names it. `root` is the path of the patch in the object,
// for refusals.
func PodSpec(base kaos.Map, patch any, own, root string) (kaos.Map, error) {
	merged, err := merger{exclusive: true}.run(base, patch, &podSpec, root)
	if err != nil {
		return nil, err
	}
	containers, _ := merged["containers"].([]any)
	at := slices.IndexFunc(containers, func(container any) bool { return nameOf(container) == own })
	if at > 0 && !names(patch, own) {
		moved := containers[at]
		copy(containers[1:], containers[:at])
		containers[0] = moved
	}
	return merged, nil
}

// Container merges the user's partial container into the policy's container, and can change `base`.
func Container(base kaos.Map, patch any, root string) (kaos.Map, error) {
	return merger{exclusive: true}.run(base, patch, &container, root)
}

// merger has the options of a merge.
type merger struct {
	// exclusive adds a rule for members that exclude each other: such a member in the patch replaces the other members,
	// and the merge refuses a patch with two of these members. Go's merge does not have this rule.
	exclusive bool
}

func (m merger) run(base kaos.Map, patch any, of *typ, root string) (kaos.Map, error) {
	if patch == nil {
		return base, nil
	}
	var merged kaos.Map
	overlay, ok := patch.(kaos.Map)
	failed := mistake{"must be an object", ""}
	if ok {
		failed = m.checkObject(overlay, of, "")
	}
	if failed.message == "" {
		merged, failed = m.mergeMap(base, overlay, of, "")
	}
	if failed.message != "" {
		return nil, kaos.Invalid{{Path: failed.path.Under(root), Message: failed.message}}
	}
	return merged, nil
}

// mistake is a mistake in a patch. An empty message means no mistake.
type mistake struct {
	message string
	path    kaos.Path
}

// names reports whether a patch names the container `own`, in its list of containers or in the order of this list.
func names(patch any, own string) bool {
	members, _ := patch.(kaos.Map)
	for _, list := range []string{"containers", elementOrder + "containers"} {
		items, _ := members[list].([]any)
		if slices.ContainsFunc(items, func(item any) bool { return nameOf(item) == own }) {
			return true
		}
	}
	return false
}

func nameOf(item any) string {
	members, _ := item.(kaos.Map)
	name, _ := members["name"].(string)
	return name
}
