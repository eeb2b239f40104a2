package main

import (
	"fmt"
	"path/filepath"
)

// compareCommand compares two releases file by file. The provenance of the two releases may differ, because it names
// who made the release.
func compareCommand(arguments []string) error {
	if len(arguments) != 2 {
		return fmt.Errorf("name two folders of releases")
	}
	first, err := sumsOf(arguments[0])
	if err != nil {
		return err
	}
	second, err := sumsOf(arguments[1])
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for name := range first {
		names[name] = true
	}
	for name := range second {
		names[name] = true
	}
	differing := 0
	for _, name := range sorted(names) {
		one, inFirst := first[name]
		other, inSecond := second[name]
		switch {
		case !inFirst:
			fmt.Printf("%s: only in %s\n", name, filepath.Clean(arguments[1]))
		case !inSecond:
			fmt.Printf("%s: only in %s\n", name, filepath.Clean(arguments[0]))
		case one == other:
			fmt.Printf("ok: %s\n", name)
			continue
		case name == provenanceFile:
			fmt.Printf("%s: differs, as it may: it names who made the release\n", name)
			continue
		default:
			fmt.Printf("%s: differs: %s and %s\n", name, one, other)
		}
		differing++
	}
	if differing > 0 {
		fmt.Printf("%d of %d files differ\n", differing, len(names))
		return errRefused
	}
	fmt.Printf("the releases have the same %d files\n", len(names))
	return nil
}
