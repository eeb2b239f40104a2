package main

import (
	"path"
	"reflect"
	"slices"
	"strings"
)

// kindsOfTargets are the tables of the targets other than the library, and the folders where cargo finds such targets.
var kindsOfTargets = map[string]string{"bin": "src/bin", "example": "examples", "test": "tests", "bench": "benches"}

// targets returns the targets that cargo builds of a crate with these files, by kind and name: the targets that the
// Cargo.toml declares, and those that cargo finds by itself. Each target has its path.
func (c publishedCrate) targets(files []string) map[string]map[string]any {
	found := map[string]map[string]any{}
	add := func(kind, name string, declared map[string]any, places []string) {
		target := map[string]any{"name": name}
		if at := slices.IndexFunc(places, func(place string) bool { return slices.Contains(files, place) }); at >= 0 {
			target["path"] = places[at]
		}
		for key, value := range declared {
			target[key] = value
		}
		// cargo leaves out targets whose files it does not package.
		if at, is := target["path"].(string); is && slices.Contains(files, at) {
			found[kind+" "+name] = target
		}
	}
	library := c.read.table("lib")
	name, named := library["name"].(string)
	if !named {
		name = strings.ReplaceAll(c.name, "-", "_")
	}
	add("lib", name, library, []string{"src/lib.rs"})
	for kind, folder := range kindsOfTargets {
		if c.read.table("package")["auto"+plural(kind)] != false {
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
	is, wanted := publishedCrate{name: c.name, read: packaged}.targets(files), c.targets(files)
	all := map[string]bool{}
	for _, targets := range []map[string]map[string]any{is, wanted} {
		for target := range targets {
			all[target] = true
		}
	}
	var found []string
	for _, target := range sorted(all) {
		if !reflect.DeepEqual(is[target], wanted[target]) {
			found = append(found, "the target "+target)
		}
	}
	return found
}

// placesOf returns the files in which cargo looks for a target.
func (c publishedCrate) placesOf(folder, name string) []string {
	places := []string{path.Join(folder, name+".rs"), path.Join(folder, name, "main.rs")}
	if folder == kindsOfTargets["bin"] && name == c.name {
		places = append(places, "src/main.rs")
	}
	return places
}

// foundBelow returns the names of the targets that cargo finds in a folder.
func (c publishedCrate) foundBelow(folder string, files []string) []string {
	var names []string
	for _, file := range files {
		switch {
		case folder == kindsOfTargets["bin"] && file == "src/main.rs":
			names = append(names, c.name)
		case path.Dir(file) == folder && path.Ext(file) == ".rs":
			names = append(names, strings.TrimSuffix(path.Base(file), ".rs"))
		case path.Dir(path.Dir(file)) == folder && path.Base(file) == "main.rs":
			names = append(names, path.Base(path.Dir(file)))
		}
	}
	return names
}

// buildScript returns the build script of a crate with these files: its path, or false.
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
