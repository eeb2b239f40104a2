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
edition = "2024"

[dependencies]
more = { version = "1", path = "../more" }

[[example]]
name = "one"
crate-type = ["cdylib"]
`

// asPackaged is the Cargo.toml that cargo writes when it packages the crate with the Cargo.toml `ofTheSources`.
const asPackaged = `[package]
name = "a-crate"
version = "1.0.0"
edition = "2024"
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

[dependencies.more]
version = "1"

[[test]]
name = "suite"
path = "tests/suite/main.rs"
`

func differencesOf(t *testing.T, packaged string, files []string) []string {
	one := publishedCrate{name: "a-crate", version: "1.0.0", read: must(readManifest([]byte(ofTheSources)))}
	one.workspace = cargoManifest{}
	return one.differences(must(readManifest([]byte(packaged))), files)
}

func TestTheManifestThatCargoWritesDoesNotDiffer(t *testing.T) {
	if found := differencesOf(t, asPackaged, filesOfTheCrate); found != nil {
		t.Fatal(found)
	}
	if found := differencesOf(t, replaced(t, ofTheSources, `, path = "../more"`, ""), filesOfTheCrate); found != nil {
		t.Fatalf("an older cargo leaves the targets to the next cargo: %v", found)
	}
}

func TestAChangedTargetDiffers(t *testing.T) {
	for change, wanted := range map[[2]string]string{
		{`path = "src/lib.rs"`, `path = "src/other.rs"`}:                              "the target lib a_crate",
		{`path = "src/lib.rs"`, `path = "src/gone.rs"`}:                               "the target lib a_crate",
		{`path = "src/lib.rs"`, "path = \"src/lib.rs\"\nproc-macro = true"}:           "the target lib a_crate",
		{"[lib]\nname = \"a_crate\"\npath = \"src/lib.rs\"\n", ""}:                    "the target lib a_crate",
		{`path = "src/bin/tool.rs"`, `path = "src/other.rs"`}:                         "the target bin tool",
		{`[[bin]]`, "[[bin]]\nname = \"x\"\npath = \"./src/other.rs\"\n[[bin]]"}:      "the target bin x",
		{`[[bin]]`, "[[bin]]\nname = \"x\"\npath = \"../x/main.rs\"\n[[bin]]"}:        "the target bin x",
		{`[package]`, "bench = [{name = \"x\", path = \"src/other.rs\"}]\n[package]"}: "the table bench",
		{`crate-type = ["cdylib"]`, `crate-type = ["dylib"]`}:                         "the target example one",
		{`name = "suite"`, "name = \"suite\"\nharness = false"}:                       "the target test suite",
		{`build = false`, `build = "src/other.rs"`}:                                   "package.build",
		{`build = false`, `build = ["src/other.rs"]`}:                                 "package.build",
		{"edition = \"2024\"\n", ""}:                                                  "package.edition",
		{`[dependencies.more]`, "[dependencies.more]\npath = \"../more\""}:            "dependencies.more",
		{`[[test]]`, "[target.x.build_dependencies.more]\nversion = \"1\"\n[[test]]"}: "the table target.x.build_dependencies",
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

// replaced replaces `old` in a text by `new`. The test fails if the text does not contain `old`.
func replaced(t *testing.T, text, old, new string) string {
	if !strings.Contains(text, old) {
		t.Fatalf("%q is missing", old)
	}
	return strings.Replace(text, old, new, 1)
}
