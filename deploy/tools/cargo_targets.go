package main

import (
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
)

// foldersOfTargets maps the name of each table of targets in a Cargo.toml, except the library's, to the folder in which
// cargo finds such targets.
var foldersOfTargets = map[string]string{"bin": "src/bin", "example": "examples", "test": "tests", "bench": "benches"}

// sourceTargets returns the targets that cargo writes into the packaged Cargo.toml of a crate with these files, by kind
// and name. These are the targets in the Cargo.toml of the sources, and the targets that cargo finds by itself. Each
// target has its path. cargo omits targets whose files it does not package.
func (c publishedCrate) sourceTargets(files []string) map[string]map[string]any {
	found := c.targets(files)
	maps.DeleteFunc(found, func(_ string, target map[string]any) bool {
		at, _ := target["path"].(string)
		return !slices.Contains(files, at)
	})
	return found
}

// targets returns the targets that cargo builds for a crate with these files, by kind and name.
func (c publishedCrate) targets(files []string) map[string]map[string]any {
	found := map[string]map[string]any{}
	add := func(kind, name string, declared map[string]any, places []string) {
		target := map[string]any{"name": name}
		if at := slices.IndexFunc(places, func(place string) bool { return slices.Contains(files, place) }); at >= 0 {
			target["path"] = places[at]
		}
		maps.Copy(target, declared)
		found[kind+" "+name] = target
	}
	about, library := c.read.table("package"), c.read.table("lib")
	if library != nil || about["autolib"] != false && slices.Contains(files, "src/lib.rs") {
		name, named := library["name"].(string)
		if !named {
			name = strings.ReplaceAll(c.name, "-", "_")
		}
		add("lib", name, library, []string{"src/lib.rs"})
	}
	for kind, folder := range foldersOfTargets {
		if about["auto"+plural(kind)] != false {
			for _, name := range c.foundBelow(folder, files) {
				add(kind, name, nil, c.placesOf(folder, name))
			}
		}
		declared, _ := c.read[kind].([]map[string]any)
		for _, target := range declared {
			name, _ := target["name"].(string)
			add(kind, name, target, c.placesOf(folder, name))
		}
	}
	return found
}

// differentTargets compares the targets of a packaged Cargo.toml with those of the sources.
func (c publishedCrate) differentTargets(packaged cargoManifest, files []string) []string {
	var found []string
	// cargo writes each target as a separate table. The comparison below can read only this form, so report any other
	// form.
	for _, kind := range sorted(foldersOfTargets) {
		if _, is := packaged[kind].([]map[string]any); packaged[kind] != nil && !is {
			found = append(found, "the table "+kind)
		}
	}
	if packaged["lib"] != nil && packaged.table("lib") == nil {
		found = append(found, "the table lib")
	}
	is, wanted := publishedCrate{name: c.name, read: packaged}.targets(files), c.sourceTargets(files)
	for _, target := range union(is, wanted) {
		if !reflect.DeepEqual(is[target], wanted[target]) {
			found = append(found, "the target "+target)
		}
	}
	return found
}

// union returns the sorted keys of two maps.
func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return sorted(all)
}

// placesOf returns the files in which cargo looks for a target.
func (c publishedCrate) placesOf(folder, name string) []string {
	places := []string{path.Join(folder, name+".rs"), path.Join(folder, name, "main.rs")}
	if folder == foldersOfTargets["bin"] && name == c.name {
		places = append(places, "src/main.rs")
	}
	return places
}

// foundBelow returns the names of the targets that cargo finds in a folder.
func (c publishedCrate) foundBelow(folder string, files []string) []string {
	var names []string
	for _, file := range files {
		switch {
		case folder == foldersOfTargets["bin"] && file == "src/main.rs":
			names = append(names, c.name)
		case path.Dir(file) == folder && path.Ext(file) == ".rs":
			names = append(names, strings.TrimSuffix(path.Base(file), ".rs"))
		case path.Dir(path.Dir(file)) == folder && path.Base(file) == "main.rs":
			names = append(names, path.Base(path.Dir(file)))
		}
	}
	return names
}

// buildScript returns the path of the crate's build script, or false if the crate has none.
func (c publishedCrate) buildScript(files []string) any {
	declared := c.inherited("build")
	switch {
	case declared != nil && declared != true:
		return declared
	case declared == true || slices.Contains(files, "build.rs"):
		return "build.rs"
	default:
		return false
	}
}

func plural(kind string) string {
	if kind == "bench" {
		return "benches"
	}
	return kind + "s"
}
