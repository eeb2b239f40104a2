package main

import (
	"reflect"
	"testing"
)

// partSources has a policy, its library, and crates of the registry. The policy always needs `always` 2.0.0, and
// nothing needs `always` 1.0.0. A build of the policy can contain the other crates, but need not: only a crate of the
// registry, a feature or a test needs them.
var partSources = &sources{files: contents{
	"guest-policies/Cargo.lock": []byte(`
[[package]]
name = "policy"
version = "0.1.0"
dependencies = ["library", "always 2.0.0", "tests"]
[[package]]
name = "library"
version = "0.1.0"
dependencies = ["feature"]
[[package]]
name = "always"
version = "1.0.0"
checksum = "01"
[[package]]
name = "always"
version = "2.0.0"
checksum = "02"
dependencies = ["below"]
[[package]]
name = "below"
version = "1.0.0"
checksum = "03"
[[package]]
name = "feature"
version = "1.0.0"
checksum = "04"
[[package]]
name = "tests"
version = "1.0.0"
checksum = "05"
`),
	"guest-policies/policy/Cargo.toml": []byte(`
[package]
name = "policy"
[package.metadata.kaos-policy]
[dependencies]
library.workspace = true
other = { package = "always", version = "2" }
[dev-dependencies]
tests = "1"
`),
	"guest-policies/library/Cargo.toml": []byte(`
[package]
name = "library"
[dependencies]
feature = { version = "1", optional = true }
`),
}}

func TestAPartMustHaveItsOwnCratesAndWhatTheyAlwaysNeed(t *testing.T) {
	known := must(partSources.graph(parts[1]))
	if is, wanted := ordered(known.required(parts[1])), []crate{{"always", "2.0.0"}, {"library", "0.1.0"}, {"policy", "0.1.0"}}; !reflect.DeepEqual(is, wanted) {
		t.Errorf("required: %v", is)
	}
	wanted := []crate{{"always", "2.0.0"}, {"below", "1.0.0"}, {"feature", "1.0.0"}, {"library", "0.1.0"}, {"policy", "0.1.0"}}
	if is := ordered(known.possible(parts[1])); !reflect.DeepEqual(is, wanted) {
		t.Errorf("possible: %v", is)
	}
}
