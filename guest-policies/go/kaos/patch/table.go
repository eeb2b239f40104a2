package patch

import (
	"slices"
	"strings"
)

const (
	directive    = "$patch"
	retainKeys   = "$retainKeys"
	elementOrder = "$setElementOrder/"
	deleteFrom   = "$deleteFromPrimitiveList/"
)

// isDirective reports whether a member of this name is a directive and not content.
func isDirective(key string) bool {
	return key == directive || key == retainKeys || strings.HasPrefix(key, elementOrder) || strings.HasPrefix(key, deleteFrom)
}

// typ describes a type: its fields with a merge rule, and its members that exclude each other.
type typ struct {
	fields map[string]rule
	// among lists members of which a patch can set at most one.
	among []string
	// allBut is the name of a member that does not count. If allBut is set, a patch can set at most one other member.
	allBut *string
	// by is the name of a member. If the patch gives this member a new value, the merge removes all members of the base.
	by string
}

// rule is the merge rule of a field: an object with its own rules, a list that merges by a key, or a set.
type rule struct {
	of  *typ
	key string
	set bool
}

func (t *typ) rivals(key string) bool {
	if t.allBut != nil {
		return key != *t.allBut && !isDirective(key)
	}
	return slices.Contains(t.among, key)
}

func object(of *typ) rule           { return rule{of: of} }
func list(key string, of *typ) rule { return rule{of: of, key: key} }
func but(name string) *string       { return &name }

// The merge keys and the sets come from the tags patchMergeKey and patchStrategy of k8s.io/api v0.36.
var (
	plain  = typ{}
	byType = typ{by: "type"}

	metadata = typ{fields: map[string]rule{"finalizers": {set: true}, "ownerReferences": list("uid", &plain)}}

	podSpec = typ{fields: map[string]rule{
		"containers":                list("name", &container),
		"ephemeralContainers":       list("name", &container),
		"hostAliases":               list("ip", &plain),
		"imagePullSecrets":          list("name", &plain),
		"initContainers":            list("name", &container),
		"resourceClaims":            list("name", &typ{allBut: but("name")}),
		"schedulingGates":           list("name", &plain),
		"securityContext":           object(&securityContext),
		"topologySpreadConstraints": list("topologyKey", &plain),
		"volumes":                   list("name", &volume),
	}}

	container = typ{fields: map[string]rule{
		"env":             list("name", &variable),
		"lifecycle":       object(&typ{fields: map[string]rule{"postStart": object(&handler), "preStop": object(&handler)}}),
		"livenessProbe":   object(&handler),
		"ports":           list("containerPort", &plain),
		"readinessProbe":  object(&handler),
		"securityContext": object(&securityContext),
		"startupProbe":    object(&handler),
		"volumeDevices":   list("devicePath", &plain),
		"volumeMounts":    list("mountPath", &plain),
	}}

	variable = typ{
		fields: map[string]rule{"valueFrom": object(&typ{allBut: but("")})},
		among:  []string{"value", "valueFrom"},
	}

	handler = typ{among: []string{"exec", "grpc", "httpGet", "sleep", "tcpSocket"}}

	securityContext = typ{fields: map[string]rule{"appArmorProfile": object(&byType), "seccompProfile": object(&byType)}}

	volume = typ{
		fields: map[string]rule{"ephemeral": object(&typ{fields: map[string]rule{
			"volumeClaimTemplate": object(&typ{fields: map[string]rule{"metadata": object(&metadata)}}),
		}})},
		allBut: but("name"),
	}
)
