package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"github.com/BurntSushi/toml"
)

// crate identifies a crate of cargo.
type crate struct{ name, version string }

func (c crate) String() string { return c.name + " " + c.version }
func (c crate) purl() string   { return "pkg:cargo/" + c.name + "@" + c.version }

// lockFile has the checksums of the crates of a Cargo.lock. Crates of the repository have no checksum.
type lockFile map[crate]string

func readLock(text []byte) (lockFile, error) {
	var read struct {
		Package []struct{ Name, Version, Checksum string }
	}
	if err := toml.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	lock := lockFile{}
	for _, one := range read.Package {
		lock[crate{one.Name, one.Version}] = one.Checksum
	}
	return lock, nil
}

// metadata is the part of `cargo metadata` that bills of materials need.
type metadata struct {
	Packages []struct {
		ID, Name, Version, License, Repository string
		Metadata                               struct {
			Policy *json.RawMessage `json:"kaos-policy"`
		}
	}
	Resolve struct {
		Nodes []struct {
			ID   string
			Deps []struct {
				Pkg   string
				Kinds []struct{ Kind string } `json:"dep_kinds"`
			}
		}
	}
}

func readMetadata(file string) (*metadata, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	read := &metadata{}
	if err := json.Unmarshal(text, read); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return read, nil
}

// licenses returns the licence of each crate.
func (m *metadata) licenses() map[crate]string {
	found := map[crate]string{}
	for _, one := range m.Packages {
		found[crate{one.Name, one.Version}] = one.License
	}
	return found
}

// compiled returns the crates that are compiled into the crate `root`. If `root` is empty, these are the crates that
// are compiled into the policies.
func (m *metadata) compiled(root string) ([]crate, error) {
	names, next := map[string]crate{}, []string{}
	for _, one := range m.Packages {
		names[one.ID] = crate{one.Name, one.Version}
		if one.Name == root || (root == "" && one.Metadata.Policy != nil) {
			next = append(next, one.ID)
		}
	}
	if len(next) == 0 {
		return nil, fmt.Errorf("cargo metadata lists no package %s", root)
	}
	needs := map[string][]string{}
	for _, node := range m.Resolve.Nodes {
		for _, dependency := range node.Deps {
			for _, kind := range dependency.Kinds {
				if kind.Kind == "" {
					needs[node.ID] = append(needs[node.ID], dependency.Pkg)
				}
			}
		}
	}
	seen := map[crate]bool{}
	for len(next) > 0 {
		id := next[0]
		next = next[1:]
		if !seen[names[id]] {
			seen[names[id]] = true
			next = append(next, needs[id]...)
		}
	}
	return ordered(seen), nil
}

func ordered(crates map[crate]bool) []crate {
	list := make([]crate, 0, len(crates))
	for one := range crates {
		list = append(list, one)
	}
	sort.Slice(list, func(a, b int) bool { return list[a].String() < list[b].String() })
	return list
}
