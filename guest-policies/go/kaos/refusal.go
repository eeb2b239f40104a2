package kaos

import (
	"errors"
	"fmt"
	"strings"
)

// A refusal is an error: return it from Translate, MapEnv or Amend.
//
//	return nil, kaos.Invalid{{Path: "spec.title", Message: "must not be blank: give the site a title"}}
//	return nil, kaos.Unsupported("this cluster has no gateway")

func (r Invalid) Error() string {
	all := make([]string, len(r))
	for i, violation := range r {
		all[i] = violation.Path + ": " + violation.Message
	}
	return strings.Join(all, "; ")
}

func (r Waiting) Error() string {
	all := make([]string, len(r))
	for i, blocker := range r {
		all[i] = blocker.Message
	}
	return strings.Join(all, "; ")
}

func (r Unsupported) Error() string { return string(r) }

// NotFound returns a blocker for an object that does not exist.
func NotFound(on Reference) Blocker {
	return Blocker{On: on, Reason: "NotFound", Message: fmt.Sprintf("%s %s not found", on.Kind, on.Name)}
}

// BlockedBy returns a blocker for `on`. Its reason comes from `err`, an error of [Subject.One] or [Subject.List].
func BlockedBy(on Reference, err error) Blocker {
	var forbidden ForbiddenError
	switch {
	case errors.Is(err, ErrUnserved):
		message := fmt.Sprintf("this cluster does not serve %s of %s", on.Kind, on.APIVersion)
		return Blocker{On: on, Reason: "Unserved", Message: message}
	case errors.As(err, &forbidden):
		message := fmt.Sprintf("%s %s cannot be read: %s", on.Kind, on.Name, forbidden)
		return Blocker{On: on, Reason: "Forbidden", Message: message}
	}
	return NotFound(on)
}

// Violations collects mistakes, so that the user sees all of them at once.
type Violations Invalid

// Add adds a mistake at a path of the object. The message names the mistake and the remedy.
func (v *Violations) Add(path, message string) {
	*v = append(*v, Violation{Path: path, Message: message})
}

// Require adds the mistake if `holds` is false. It returns `holds`.
func (v *Violations) Require(holds bool, path, message string) bool {
	if !holds {
		v.Add(path, message)
	}
	return holds
}

// Collect adds the mistakes of an error of the type [Invalid]. It returns any other error, for example [Waiting].
func (v *Violations) Collect(err error) error {
	var invalid Invalid
	if !errors.As(err, &invalid) {
		return err
	}
	*v = append(*v, invalid...)
	return nil
}

// Refusal returns a refusal with all mistakes, or nil if there are none.
func (v Violations) Refusal() error {
	if len(v) == 0 {
		return nil
	}
	return Invalid(v)
}
