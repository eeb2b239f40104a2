// Package kaos is the library for authors of KAOS policies in Go.
//
// A policy is a type with the methods of [Policy]. It can also have the methods of [Needer], [EnvMapper], [Assessor].
// Pass a value of it to Export of the package kaos/policy. The answers of a policy must depend only on the arguments.
//
// An overlay changes the answer of the policy below. It is a type with the methods of [Overlay]. It can also have the
// methods of [Needer] and [EnvMapper]. Pass it to overlay.Export of the package kaos/overlay.
//
//	to                                        use
//	read the object and the settings          Subject.Get, Subject.Read, Subject.ReadSettings
//	ask for other objects, and read them      NeedOf, NeedAll; Subject.One, Subject.List
//	build the mapping of variables            EnvOver, ContainerEnv
//	build a plan                              NewPlan, NewManifest
//	refuse an object                          Invalid, Waiting, Unsupported, Violations
//	count pods                                Observation.Rollout
//	amend a plan                              the package kaos/amend
//	check names                               DNS1035Label, DNS1123Label
//	test                                      the package kaos/kaostest
package kaos

// Policy answers the questions that every policy answers.
type Policy interface {
	// Describe returns the name and the version of the policy, its claims, and the schema of its settings.
	Describe() Descriptor
	// Translate returns the plan. `env` is the final mapping. To refuse the object, return a refusal as the error:
	// Invalid, Waiting or Unsupported. Any other error is a mistake of the policy, like a panic.
	Translate(subject *Subject, env []EnvVar) (*Plan, error)
}

// Overlay answers the questions that every overlay answers.
type Overlay interface {
	// Describe returns the name and the version of the overlay, its claims, and the schema of its settings. Emits of a
	// claim lists the types of the children that the overlay changes or adds.
	Describe() Descriptor
	// Amend returns the amended plan. `below` is the plan of the policy below. Amend may change and return `below`. To
	// refuse the object, return a refusal as the error, as in Translate of a [Policy].
	Amend(subject *Subject, below *Plan) (*Plan, error)
}

// Needer is a policy that must see other objects.
type Needer interface {
	// Needs returns the needs. The host calls Needs again with the answers, until Needs returns no new need.
	Needs(subject *Subject) []Need
}

// EnvMapper is a policy that sets environment variables.
type EnvMapper interface {
	// MapEnv returns the mapping. `base` is the mapping of the layer below, and empty for the lowest layer.
	MapEnv(subject *Subject, base []EnvVar) ([]EnvVar, error)
}

// Assessor is a policy that reports its own status. The status of any other policy is [DefaultReport].
type Assessor interface {
	// Assess returns the status for the user.
	Assess(subject *Subject, seen *Observation) Report
}
