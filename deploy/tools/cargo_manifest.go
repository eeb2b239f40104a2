package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// cargoManifest is a Cargo.toml. When cargo packages a crate, it writes a new Cargo.toml. The new file omits the paths
// of dependencies, and contains the values that the crate inherits from its workspace.
type cargoManifest map[string]any

func readManifest(text []byte) (cargoManifest, error) {
	read := cargoManifest{}
	return read, toml.Unmarshal(text, &read)
}

func (m cargoManifest) table(names ...string) map[string]any {
	at := map[string]any(m)
	for _, name := range names {
		at, _ = at[name].(map[string]any)
	}
	return at
}

// publishedCrate describes a crate that a release contains, as the sources define the crate.
type publishedCrate struct {
	folder          string
	name, version   string
	read, workspace cargoManifest
}

func (c publishedCrate) file() string { return c.name + "-" + c.version + ".crate" }

// publishedCrates returns the crates whose Cargo.toml has `publish = true`, by the names of their files in the release.
func (s *sources) publishedCrates() (map[string]publishedCrate, error) {
	found := map[string]publishedCrate{}
	for name, text := range s.files {
		if path.Base(name) != "Cargo.toml" {
			continue
		}
		read, err := readManifest(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if read.table("package")["publish"] != true {
			continue
		}
		one := publishedCrate{folder: path.Dir(name), read: read}
		if one.workspace, err = s.workspace(one.folder); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		one.name, _ = one.inherited("name").(string)
		one.version, _ = one.inherited("version").(string)
		found[one.file()] = one
	}
	return found, nil
}

// workspace returns the manifest of the workspace to which the crate in `folder` belongs.
func (s *sources) workspace(folder string) (cargoManifest, error) {
	for {
		if text, found := s.files[path.Join(folder, "Cargo.toml")]; found {
			if read, err := readManifest(text); err != nil || read["workspace"] != nil {
				return read, err
			}
		}
		if folder == "." {
			return cargoManifest{}, nil
		}
		folder = path.Dir(folder)
	}
}

// inherited returns the package's own value for a key, or the workspace's value if the crate inherits the value.
func (c publishedCrate) inherited(key string) any {
	value := c.read.table("package")[key]
	if from, is := value.(map[string]any); is && from["workspace"] == true {
		return c.workspace.table("workspace", "package")[key]
	}
	return value
}

// differences compares two versions of a crate's Cargo.toml: the one that cargo wrote into the crate, and the one of
// the sources. It compares the package, the features, the targets and the dependencies. `files` are the files of the
// crate.
func (c publishedCrate) differences(packaged cargoManifest, files []string) []string {
	var found []string
	known := []string{"package", "features", "lib", "bin", "example", "test", "bench", "target", "lints"}
	for _, key := range sorted(packaged) {
		if !slices.Contains(append(known, dependencyTables...), key) {
			found = append(found, "the table "+key)
		}
	}
	about := packaged.table("package")
	for _, key := range union(about, c.read.table("package")) {
		switch {
		case key == "build" || key == "readme" || key == "workspace" || strings.HasPrefix(key, "auto"):
		case !reflect.DeepEqual(about[key], c.inherited(key)):
			found = append(found, "package."+key)
		}
	}
	if !reflect.DeepEqual(publishedCrate{read: packaged}.buildScript(files), c.buildScript(files)) {
		found = append(found, "package.build")
	}
	if !reflect.DeepEqual(packaged["features"], c.read["features"]) {
		found = append(found, "the features")
	}
	found = append(found, c.differentTargets(packaged, files)...)
	for platform := range packaged.table("target") {
		for key := range packaged.table("target", platform) {
			if !slices.Contains(dependencyTables, key) {
				found = append(found, "the table target."+platform+"."+key)
			}
		}
	}
	is, wanted := dependenciesOf(packaged, nil), dependenciesOf(c.read, c.workspace)
	for _, name := range union(is, wanted) {
		if is[name] != wanted[name] {
			found = append(found, name)
		}
	}
	return found
}

var dependencyTables = []string{"dependencies", "build-dependencies", "dev-dependencies"}

// dependenciesOf maps the table and name of each dependency to the dependency as JSON. Equal dependencies have equal
// JSON.
func dependenciesOf(of, workspace cargoManifest) map[string]string {
	found := map[string]string{}
	add := func(under string, tables map[string]any) {
		for _, kind := range dependencyTables {
			dependencies, _ := tables[kind].(map[string]any)
			for name, written := range dependencies {
				plain := plainDependency(name, written, workspace)
				// cargo leaves out dev-dependencies that have only a path.
				if kind == "dev-dependencies" && plain["version"] == nil && plain["git"] == nil {
					continue
				}
				text, _ := json.Marshal(plain)
				found[under+kind+"."+name] = string(text)
			}
		}
	}
	add("", of)
	for platform := range of.table("target") {
		add("target."+platform+".", of.table("target", platform))
	}
	return found
}

// plainDependency returns a dependency as cargo packages it: as a table, with the values that the crate inherits from
// `workspace`. For a Cargo.toml of the sources, callers pass a `workspace`, and plainDependency omits paths like cargo.
// For a packaged Cargo.toml, callers pass nil. A path in it stays, and counts as a difference.
func plainDependency(name string, written any, workspace cargoManifest) map[string]any {
	plain := map[string]any{}
	switch written := written.(type) {
	case string:
		plain["version"] = written
	case map[string]any:
		maps.Copy(plain, written)
	}
	features, _ := plain["features"].([]any)
	if plain["workspace"] == true {
		inherited := plainDependency(name, workspace.table("workspace", "dependencies")[name], cargoManifest{})
		more, _ := inherited["features"].([]any)
		features = append(slices.Clone(features), more...)
		maps.Copy(plain, inherited)
	}
	slices.SortFunc(features, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	delete(plain, "features")
	if features = slices.Compact(features); len(features) > 0 {
		plain["features"] = features
	}
	if workspace != nil {
		delete(plain, "path")
	}
	for key, usual := range map[string]any{"default-features": true, "optional": false, "workspace": true} {
		if plain[key] == usual {
			delete(plain, key)
		}
	}
	return plain
}
