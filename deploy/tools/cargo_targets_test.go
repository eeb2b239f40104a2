package main

import (
	"slices"
	"strings"
	"testing"
)

var filesOfTheCrate = []string{"src/lib.rs", "src/other.rs", "src/bin/tool.rs", "tests/suite/main.rs", "examples/one.rs"}

const ofTheSources = `[package]
name = "a-crate"
version = "1.0.0"

[[example]]
name = "one"
crate-type = ["cdylib"]
`

// asPackaged is the Cargo.toml that cargo writes into the crate.
const asPackaged = `[package]
name = "a-crate"
version = "1.0.0"
build = false
autolib = false
autobins = false
autoexamples = false
autotests = false
autobenches = false

[lib]
name = "a_crate"
path = "src/lib.rs"

[[bin]]
name = "tool"
path = "src/bin/tool.rs"

[[example]]
name = "one"
path = "examples/one.rs"
crate-type = ["cdylib"]

[[test]]
name = "suite"
path = "tests/suite/main.rs"
`

func differencesOf(t *testing.T, packaged string, files []string) []string {
	one := publishedCrate{name: "a-crate", version: "1.0.0", read: must(readManifest([]byte(ofTheSources)))}
	return one.differences(must(readManifest([]byte(packaged))), files)
}

func TestTheManifestThatCargoWritesDoesNotDiffer(t *testing.T) {
	if found := differencesOf(t, asPackaged, filesOfTheCrate); found != nil {
		t.Fatal(found)
	}
	if found := differencesOf(t, ofTheSources, filesOfTheCrate); found != nil {
		t.Fatalf("an older cargo leaves the targets to the next cargo: %v", found)
	}
}

func TestAChangedTargetDiffers(t *testing.T) {
	for change, wanted := range map[[2]string]string{
		{`path = "src/lib.rs"`, `path = "src/other.rs"`}:                    "the target lib a_crate",
		{`path = "src/lib.rs"`, `path = "src/gone.rs"`}:                     "the target lib a_crate",
		{`path = "src/lib.rs"`, "path = \"src/lib.rs\"\nproc-macro = true"}: "the target lib a_crate",
		{`path = "src/bin/tool.rs"`, `path = "src/other.rs"`}:               "the target bin tool",
		{`crate-type = ["cdylib"]`, `crate-type = ["dylib"]`}:               "the target example one",
		{`name = "suite"`, "name = \"suite\"\nharness = false"}:             "the target test suite",
		{`build = false`, `build = "src/other.rs"`}:                         "package.build",
		{`build = false`, `build = ["src/other.rs"]`}:                       "package.build",
	} {
		packaged := replaced(t, asPackaged, change[0], change[1])
		if found := differencesOf(t, packaged, filesOfTheCrate); !slices.Equal(found, []string{wanted}) {
			t.Errorf("%s: %v", change[1], found)
		}
	}
}

func TestABuildScriptOfTheSourcesMustNotBeLeftOut(t *testing.T) {
	files := append(slices.Clone(filesOfTheCrate), "build.rs")
	if found := differencesOf(t, asPackaged, files); !slices.Equal(found, []string{"package.build"}) {
		t.Fatal(found)
	}
}

// replaced replaces a part of a text, which must contain the part.
func replaced(t *testing.T, text, old, new string) string {
	if !strings.Contains(text, old) {
		t.Fatalf("%q is missing", old)
	}
	return strings.Replace(text, old, new, 1)
}
