package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/BurntSushi/toml"
)

// graph is the graph of dependencies of one part of the program (see `part`), computed from the sources without cargo.
// It shows which crates a build of the part must contain, and which further crates it can contain. Only cargo can
// compute the exact list, because the list depends on the features and platforms of crates from the registry.
type graph struct {
	// The dependencies of each crate in the lock file: of the library, of the build script and of the tests.
	needs map[crate][]crate
	// The manifests of the repository's own crates.
	own map[string]cargoManifest
}

func (s *sources) graph(part part) (*graph, error) {
	var read struct {
		Package []struct {
			Name, Version, Checksum string
			Dependencies            []string
		}
	}
	if err := toml.Unmarshal(s.files[part.lock], &read); err != nil {
		return nil, err
	}
	made := &graph{map[crate][]crate{}, s.ownCrates()}
	named := map[string]crate{}
	for _, one := range read.Package {
		found := crate{one.Name, one.Version}
		if one.Checksum != "" {
			delete(made.own, one.Name)
		}
		named[one.Name], named[found.String()] = found, found
	}
	for _, one := range read.Package {
		from := crate{one.Name, one.Version}
		made.needs[from] = nil
		for _, written := range one.Dependencies {
			// The lock file names a dependency by its crate's name. If several crates have this name, the version
			// follows the name. If several crates have this name and version, the source follows the version.
			words := strings.Fields(written)
			to, found := named[strings.Join(words[:min(2, len(words))], " ")]
			if !found {
				return nil, fmt.Errorf("%s: %s needs the unknown crate %s", part.lock, from, written)
			}
			made.needs[from] = append(made.needs[from], to)
		}
	}
	return made, nil
}

// ownCrates returns the manifests of the repository by the names of their crates.
func (s *sources) ownCrates() map[string]cargoManifest {
	found := map[string]cargoManifest{}
	for _, name := range sorted(s.files) {
		if path.Base(name) != "Cargo.toml" {
			continue
		}
		if read, err := readManifest(s.files[name]); err == nil {
			if named, is := read.table("package")["name"].(string); is {
				found[named] = read
			}
		}
	}
	return found
}

// roots returns the crates for which a part is built: the crate `part.root`, or all policies if `part.root` is empty.
func (g *graph) roots(part part) []crate {
	var found []crate
	for one := range g.needs {
		policy := g.own[one.name].table("package", "metadata", "kaos-policy") != nil
		if one.name == part.root || part.root == "" && policy {
			found = append(found, one)
		}
	}
	return found
}

// reached returns the roots of a part, and all their direct and indirect dependencies. `follow` returns the direct
// dependencies of a crate.
func (g *graph) reached(part part, follow func(crate) []crate) map[crate]bool {
	seen, next := map[crate]bool{}, g.roots(part)
	for len(next) > 0 {
		one := next[0]
		next = next[1:]
		if !seen[one] {
			seen[one] = true
			next = append(next, follow(one)...)
		}
	}
	return seen
}

// required returns the crates that a build of a part always contains: the repository's own crates in this part, and the
// direct dependencies that these crates always need.
func (g *graph) required(part part) map[crate]bool {
	return g.reached(part, func(one crate) []crate { return g.direct(one, false) })
}

// possible returns the crates that a build of a part can contain.
func (g *graph) possible(part part) map[crate]bool {
	return g.reached(part, func(one crate) []crate {
		if g.own[one.name] != nil {
			return g.direct(one, true)
		}
		return g.needs[one]
	})
}

// direct returns the dependencies that one of the repository's own crates lists for its library. If `all` is false, it
// leaves out dependencies that depend on a feature or a platform.
func (g *graph) direct(one crate, all bool) []crate {
	manifest := g.own[one.name]
	listed := map[string]bool{}
	add := func(dependencies map[string]any) {
		for name, written := range dependencies {
			about, _ := written.(map[string]any)
			if other, is := about["package"].(string); is {
				name = other
			}
			if optional, _ := about["optional"].(bool); all || !optional {
				listed[name] = true
			}
		}
	}
	add(manifest.table("dependencies"))
	if all {
		for platform := range manifest.table("target") {
			add(manifest.table("target", platform, "dependencies"))
		}
	}
	var found []crate
	for _, other := range g.needs[one] {
		if listed[other.name] {
			found = append(found, other)
		}
	}
	return found
}
