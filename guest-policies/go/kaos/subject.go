package kaos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// parsed keeps the parts of the subject that the library has already parsed.
type parsed struct {
	object   *Object
	settings *Object
}

// Get returns the object for which the policy answers.
func (s *Subject) Get() Object {
	if s.parsed.object == nil {
		object := ParseObject(s.Object)
		s.parsed.object = &object
	}
	return *s.parsed.object
}

// Read decodes a member of the object, for example "spec", into a value of the policy. If the object lacks a field, the
// field of `into` keeps its value, which is then the default. The error is a refusal that names the wrong field.
func (s *Subject) Read(member string, into any) error { return s.Get().Read(member, into) }

// GetSettings returns the effective settings.
func (s *Subject) GetSettings() Object {
	if s.parsed.settings == nil {
		settings := ParseObject(s.Settings)
		s.parsed.settings = &settings
	}
	return *s.parsed.settings
}

// ReadSettings decodes the effective settings into a value of the policy.
func (s *Subject) ReadSettings(into any) error {
	return decode(s.GetSettings().members, into, "settings")
}

// Serves reports whether the cluster serves a type that the claim lists among its wishes.
func (s *Subject) Serves(apiVersion, kind string) bool {
	return slices.Contains(s.Cluster.Served, ResourceType{APIVersion: apiVersion, Kind: kind})
}

// ServiceHost returns the DNS name of a Service.
func (s *Subject) ServiceHost(service, namespace string) string {
	return fmt.Sprintf("%s.%s.svc.%s", service, namespace, s.Cluster.Domain)
}

// Add adds answers to needs. The library calls Add with the host's answers. Authors call Add only in tests.
func (s *Subject) Add(found []Found) {
	s.Found = append(s.Found, found...)
	slices.SortStableFunc(s.Found, func(a, b Found) int { return strings.Compare(a.ID, b.ID) })
}

// Reasons why a lookup returns no object.
var (
	// ErrAbsent means that the host looked for the object and did not find it.
	ErrAbsent = errors.New("not found")
	// ErrUnserved means that the cluster does not serve the type now.
	ErrUnserved = errors.New("the cluster does not serve this type")
	// ErrUnasked means that the policy returned no need with this id.
	ErrUnasked = errors.New("the policy did not ask for it")
)

// ForbiddenError is the reason why the operator or the policy is not allowed to read the object.
type ForbiddenError string

func (e ForbiddenError) Error() string { return string(e) }

// One returns the object that answers the need `id`. The need names this object.
func (s *Subject) One(id string) (Object, error) {
	objects, err := s.List(id)
	if err != nil {
		return Object{}, err
	}
	if len(objects) == 0 {
		return Object{}, ErrAbsent
	}
	return objects[0], nil
}

// List returns the objects that answer the need `id`. The need selects these objects by labels.
func (s *Subject) List(id string) ([]Object, error) {
	switch answer := s.answer(id).(type) {
	case Objects:
		objects := make([]Object, len(answer))
		for i, text := range answer {
			objects[i] = ParseObject(text)
		}
		return objects, nil
	case Secret:
		return nil, ForbiddenError("the host returns only the facts of a Secret")
	default:
		return nil, missing(answer)
	}
}

// Secret returns the facts of the Secret that answers the need `id`.
func (s *Subject) Secret(id string) (SecretFacts, error) {
	switch answer := s.answer(id).(type) {
	case Secret:
		if answer.Present {
			return SecretFacts(answer), nil
		}
		return SecretFacts{}, ErrAbsent
	case Objects:
		return SecretFacts{}, ErrAbsent
	default:
		return SecretFacts{}, missing(answer)
	}
}

func (s *Subject) answer(id string) Answer {
	for _, found := range s.Found {
		if found.ID == id {
			return found.Answer
		}
	}
	return nil
}

func missing(answer Answer) error {
	switch answer := answer.(type) {
	case Unserved:
		return ErrUnserved
	case Forbidden:
		return ForbiddenError(answer)
	}
	return ErrUnasked
}
