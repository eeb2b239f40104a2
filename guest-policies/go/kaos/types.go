// Generated from wit/policy.wit of the KAOS policy operator by
// UPDATE_GOLDEN=1 cargo test --package kaos-tests --test policies go_types. DO NOT EDIT.

package kaos

import "github.com/kaos-tools/policy-operator/guest-policies/go/kaos/internal/wire"

// JSON text with sorted keys. An `extra` field holds an object, `{}` if it is empty.
type JSON string

// ResourceType is a type of the contract.
type ResourceType struct {
	APIVersion string
	Kind       string
}

// Reference is a type of the contract.
//
// A reference to one object. Without a namespace, the object is in the namespace of the pass's object, or
// cluster-scoped.
type Reference struct {
	APIVersion string
	Kind       string
	Namespace  string `wit:"option"`
	Name       string
}

// Sample is a type of the contract.
//
// A sample that the gate and `policy check` evaluate: `object` is the object as a user would write it, and
// `beside` lists the other objects in the cluster. At least one sample of each claim must end in a plan.
type Sample struct {
	Name   string
	Object JSON
	Beside []JSON
}

// Claim is a type of the contract.
type Claim struct {
	Primary ResourceType
	// Types that plans may contain. For an overlay: types of the children that the overlay adds or changes.
	Emits []ResourceType
	// Types that `needs` can name.
	Reads []ResourceType
	// Types that the policy uses only if the cluster serves them; a subset of `emits` and `reads`.
	Wishes []ResourceType
	// The finalizer that stays on the object while the operator deletes the children in order. Omit it if
	// possible. An overlay has none.
	Finalizer string `wit:"option"`
	Samples   []Sample
	Extra     JSON
}

// Descriptor is a type of the contract.
type Descriptor struct {
	// The policy's name: short, in lower case. Settings and pins refer to the policy by this name.
	Name string
	// The policy's own version (semantic versioning).
	Version string
	Claims  []Claim
	// The JSON Schema of the settings. A property can have `x-env`, the environment variable with the property's
	// value, and `x-annotation: true` if an object's annotation can override the property.
	SettingsSchema JSON
	Extra          JSON
}

// Cluster is a type of the contract.
type Cluster struct {
	// The DNS domain of Services, for example `cluster.local`.
	Domain            string
	OperatorNamespace string
	// The types among the claim's wishes that the cluster serves.
	Served []ResourceType
}

// Selector is a type of the contract.
type Selector struct {
	Of        ResourceType
	Namespace string `wit:"option"`
	Labels    [][2]string
}

// Target is a type of the contract.
type Target interface {
	isTarget()
}

// Named is a case of Target.
type Named Reference

func (Named) isTarget() {}

// Labelled is a case of Target.
type Labelled Selector

func (Labelled) isTarget() {}

func init() {
	wire.Variant[Target](Named{}, Labelled{})
}

// Need is a type of the contract.
//
// One read that the host makes for the policy. The host also watches the target, and begins a new pass when the
// answer to the need changes. The policy chooses the id, which must be unique within one list of needs. `optional`
// says that the policy can make its plan without the target. If `optional` is true, no condition reports a missing
// target.
//
// `fields` are the paths that the policy reads of each object. The answer to the need has only these fields, so a
// change of any other field begins no pass. An empty list means all fields. `apiVersion`, `kind`, `metadata.name`,
// `metadata.namespace`, `metadata.uid` and `metadata.deletionTimestamp` are always in the answer. A need of a
// Secret has an empty list, because the answer has only facts about the Secret. A need has at most 32 paths, each
// of at most 512 bytes, with this grammar:
//
// ```text
// path  = name *step [ equal ] [ "?" ]
// step  = "." name | "[" text "]" | "[" name "=" text "]"
// equal = "[=" text "]"
// name  = letters, digits, "_" and "-"
// text  = a JSON string, in double quotes
// ```
//
// | path | selects |
// |---|---|
// | `status.endpoint` | the member with its whole value |
// | `data["runtimes.yaml"]` | the member whose name has characters that the grammar's `name` does not allow |
// | `status.conditions[type="Ready"].status` | the maps of a list whose `type` is `Ready`, each with only `type` and the rest of the path |
// | `spec.models[="gpt-4o"]` | the items of a list that equal the text, sorted, without duplicates; or a string, if the string equals the text |
// | `spec.volume?` | `true` if the member has a value |
//
// The answer keeps the maps and lists of the object along each path. If a value has another type than the paths
// expect, the answer has the whole value.
type Need struct {
	ID       string
	Target   Target
	Fields   []string
	Optional bool
}

// SecretFacts is a type of the contract.
type SecretFacts struct {
	Present bool
	Keys    []string
	Digest  string
}

// Answer is a type of the contract.
type Answer interface {
	isAnswer()
}

// Objects is a case of Answer.
//
// The objects that exist; an empty list if there are none yet.
type Objects []JSON

func (Objects) isAnswer() {}

// Secret is a case of Answer.
//
// Facts of a Secret: whether it exists, its keys, and a keyed digest. Never its content.
type Secret SecretFacts

func (Secret) isAnswer() {}

// Unserved is a case of Answer.
//
// The cluster does not serve this type now.
type Unserved struct{}

func (Unserved) isAnswer() {}

// Forbidden is a case of Answer.
//
// The operator or the policy is not allowed to read the target. The text gives the reason.
type Forbidden string

func (Forbidden) isAnswer() {}

func init() {
	wire.Variant[Answer](Objects{}, Secret{}, Unserved{}, Forbidden(""))
}

// Found is a type of the contract.
type Found struct {
	ID     string
	Answer Answer
}

// Subject is a type of the contract.
//
// Everything that a policy can know, as data; a policy cannot call the host. The object lacks status,
// managedFields and resourceVersion. Found objects lack managedFields and resourceVersion. So a change of only
// these fields does not change the subject.
type Subject struct {
	Object JSON
	// The answers to `needs`, sorted by id.
	Found []Found
	// The effective settings: all layers merged, defaults filled in, valid by the policy's schema.
	Settings JSON
	Cluster  Cluster
	// Whether the host has ever applied a plan of the object in full. If true, the plan's `gates` hold something
	// back only if the plan sets `gates-hold`. So if `applied` is true and the plan has no `gates-hold`, the
	// policy need not read fields that only its gates depend on. Always false for a kind whose
	// CustomResourceDefinition does not declare `status.appliedGeneration`.
	Applied bool
	Extra   JSON

	parsed parsed
}

// KeySelector is a type of the contract.
type KeySelector struct {
	Name     string
	Key      string
	Optional bool
}

// EnvSource is a type of the contract.
type EnvSource interface {
	isEnvSource()
}

// Literal is a case of EnvSource.
type Literal string

func (Literal) isEnvSource() {}

// SecretKey is a case of EnvSource.
type SecretKey KeySelector

func (SecretKey) isEnvSource() {}

// ConfigMapKey is a case of EnvSource.
type ConfigMapKey KeySelector

func (ConfigMapKey) isEnvSource() {}

// FieldPath is a case of EnvSource.
type FieldPath string

func (FieldPath) isEnvSource() {}

// Other is a case of EnvSource.
//
// Any other `valueFrom`, as in a Kubernetes manifest.
type Other JSON

func (Other) isEnvSource() {}

func init() {
	wire.Variant[EnvSource](Literal(""), SecretKey{}, ConfigMapKey{}, FieldPath(""), Other(""))
}

// Source is a type of the contract.
//
// The place from which a policy takes a value, of at most 1,024 bytes:
//
// | text | place |
// |---|---|
// | `spec.podSpec.volumes[0]`, `metadata.name` | in the object |
// | `settings.serviceAccount.audience` | in the settings of the layer that set the value |
// | `ModelAPI/llm status.endpoint` | in an object that this layer found: the id of the need, a space and a path |
//
// The layer that set a value is the policy, or the last overlay that added or changed the value or the variable.
// So the settings of one layer are never the place of another layer's value.
//
// A path has names, separated by dots. A name with a dot, a slash, a space or a bracket is in brackets and double
// quotes: `annotations["example.com/role"]`. Brackets also select the item of a list, by its position or by its
// name: `ports[0]`, `containers[name="web"]`.
type Source = string

// EnvVar is a type of the contract.
//
// One environment variable. `origin` is the place of the variable, of its `valueFrom`, of its selector, or of the
// value itself. If the policy computes the value from another value, `origin` is the place of this other value.
type EnvVar struct {
	Container string
	Name      string
	Source    EnvSource
	Origin    Source
}

// Origin is a type of the contract.
//
// The origin of a value in a manifest, and of all values below it. The host looks up each value at the same path
// below `from`. In a list, the host looks at the items with the same `name`, and at the items without a `name`. The
// host believes an origin only for values that are equal in both places. So one origin can cover a whole part of a
// manifest into which the policy merges a part of the object.
//
// Several origins can cover one value. The value comes from the origin with the longest path that has an equal
// value. If several of these paths are equally long, the value comes from the last of these origins. All other
// values are the policy's own.
type Origin struct {
	// The position of the manifest in the plan.
	Manifest uint32
	// A path in the manifest; an empty text means the whole manifest.
	Path string
	From Source
}

// Severity is a type of the contract.
type Severity uint8

// The cases of Severity.
const (
	SeverityInfo Severity = iota
	SeverityWarning
)

// Note is a type of the contract.
//
// A message for the user, without any other effect. `path` is the field of the object that the message is about.
type Note struct {
	Severity Severity
	Reason   string
	Message  string
	Path     string `wit:"option"`
}

// Blocker is a type of the contract.
type Blocker struct {
	On      Reference
	Reason  string
	Message string
}

// Plan is a type of the contract.
//
// The children that the cluster should have for the object.
type Plan struct {
	Manifests []JSON
	// The origins of values in the manifests. The mapping has the origins of variables. A value that raises a
	// privilege or names a Secret or a PersistentVolumeClaim needs an origin in the object or in the owner's
	// settings, or a grant. If an overlay changes more of a child than labels, annotations and scheduling, the
	// settings and grants of the layers below no longer allow such a value in the child.
	Origins []Origin
	// The plan gates, which hold back the first apply. After the host has applied a plan of the object in full
	// once, the host only reports the plan gates. So a flapping dependency neither stops nor freezes a running
	// workload. With `gates-hold`, the plan gates also hold back later changes.
	Gates []Blocker
	// The final mapping, after all merges. The host checks that the manifests have the same variables. If the plan
	// of the policy returns an overlay's variable exactly as `translate` got it, the overlay stays the author of
	// the variable. Otherwise the policy is the author, and the grants and settings of the overlay do not apply.
	Env   []EnvVar
	Notes []Note
	// The finalizer that the host adds to the object, instead of the claim's finalizer. The host removes the
	// finalizer when the children are gone.
	Finalizer string `wit:"option"`
	// The names of the plan's PersistentVolumeClaims that get no owner reference. The kept PersistentVolumeClaims
	// stay when a user deletes the object.
	Kept []string
	// Whether the gates also hold back changes to running workloads. A policy sets `gates-hold` if its plan lacks
	// data that a missing object provides.
	GatesHold bool
	Extra     JSON
}

// Violation is a type of the contract.
//
// A problem with the object. `path` is the field with the problem. `message` names the problem and the remedy.
type Violation struct {
	Path    string
	Message string
}

// Refusal is a type of the contract.
//
// A policy's answer without a plan. The children stay as they are.
type Refusal interface {
	error
	isRefusal()
}

// Invalid is a case of Refusal.
//
// The object is invalid until a user changes it.
type Invalid []Violation

func (Invalid) isRefusal() {}

// Waiting is a case of Refusal.
//
// The policy waits until one of these objects appears or changes.
type Waiting []Blocker

func (Waiting) isRefusal() {}

// Unsupported is a case of Refusal.
//
// The cluster or the policy does not support the object. The refusal stays until the object, the cluster or
// the policy changes.
type Unsupported string

func (Unsupported) isRefusal() {}

func init() {
	wire.Variant[Refusal](Invalid{}, Waiting{}, Unsupported(""))
}

// Outcome is a type of the contract.
//
// The result of this pass. The policy gets the outcome in `assess`.
type Outcome interface {
	isOutcome()
}

// Applied is a case of Outcome.
type Applied struct{}

func (Applied) isOutcome() {}

// Gated is a case of Outcome.
//
// The plan's gates hold back this plan: the first apply or, with `gates-hold`, a change of running children. So
// children of an earlier plan may exist, and the policy reports their state.
type Gated struct{}

func (Gated) isOutcome() {}

// Refused is a case of Outcome.
type Refused struct{ Refusal Refusal }

func (Refused) isOutcome() {}

// Failed is a case of Outcome.
//
// The apply or the guard's check failed. The text is the message of the API server or the guard.
type Failed string

func (Failed) isOutcome() {}

func init() {
	wire.Variant[Outcome](Applied{}, Gated{}, Refused{}, Failed(""))
}

// Child is a type of the contract.
//
// A child of the object. An observation lists the children whatever the outcome is. `live` is the child as it is
// in the cluster, or `none` if the cluster does not have the child. A live Secret has its keys, with empty values.
type Child struct {
	Identity Reference
	Live     JSON `wit:"option"`
}

// Observation is a type of the contract.
type Observation struct {
	Outcome  Outcome
	Children []Child
	// The gates of this pass's plan; empty if the policy refused.
	Gates []Blocker
	Env   []EnvVar
	Notes []Note
	Extra JSON
}

// Truth is a type of the contract.
type Truth uint8

// The cases of Truth.
const (
	TruthYes Truth = iota
	TruthNo
	TruthUnknown
)

// Condition is a type of the contract.
type Condition struct {
	Type    string
	Status  Truth
	Reason  string
	Message string
}

// Report is a type of the contract.
//
// The policy's report for the object's `status`. `fields` is a JSON object with every other field of the status,
// except the fields that only the host writes (`observedGeneration`, `policy`, the common conditions).
type Report struct {
	Ready      bool
	Phase      string
	Message    string
	Fields     JSON
	Conditions []Condition
	Extra      JSON
}
