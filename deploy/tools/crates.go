package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// cratesCommand unpacks all crates that the given lock files name, from cargo's cache. It compares the checksum of each
// crate with the lock file, because cargo itself does this only when it downloads the crate. Without this comparison, a
// crate that somebody changed on this machine would get into the release. cargo can use the folder that cratesCommand
// writes as a source (`source.NAME.directory`).
func cratesCommand(arguments []string) error {
	flags := flag.NewFlagSet("crates", flag.ExitOnError)
	cache := flags.String("cache", "", "the folder registry/cache of cargo")
	to := flags.String("to", "", "the folder to write")
	_ = flags.Parse(arguments)
	if flags.NArg() == 0 || *cache == "" || *to == "" {
		return errors.New("name cargo's cache, the folder to write, and the lock files")
	}
	for _, name := range flags.Args() {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lock, err := readLock(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for one, checksum := range lock {
			// The repository's own crates have no checksum.
			if checksum == "" {
				continue
			}
			if err := unpackCrate(one, checksum, *cache, *to); err != nil {
				return fmt.Errorf("the crate %s: %w", one, err)
			}
		}
	}
	return nil
}

func unpackCrate(one crate, checksum, cache, to string) error {
	name := one.name + "-" + one.version
	folder := filepath.Join(to, name)
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	file, err := cachedCrate(filepath.Join(cache, "*", name+".crate"), checksum)
	if err != nil {
		return err
	}
	read, err := unpack(file)
	if err != nil {
		return err
	}
	for inside, content := range read.files {
		if !strings.HasPrefix(inside, name+"/") {
			return fmt.Errorf("%s is outside of the folder %s", inside, name)
		}
		at := filepath.Join(to, inside)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if read.programs[inside] {
			mode = 0o755
		}
		if err := os.WriteFile(at, content, mode); err != nil {
			return err
		}
	}
	// cargo compares this checksum with the crate's checksum in the lock file.
	sum := fmt.Appendf(nil, `{"files":{},"package":"%s"}`, checksum)
	return os.WriteFile(filepath.Join(folder, ".cargo-checksum.json"), sum, 0o644)
}

// cachedCrate returns the path of the file that matches `pattern` and has this checksum. Several files can match the
// pattern, because each registry and each mirror has its own folder in the cache.
func cachedCrate(pattern, checksum string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	for _, file := range found {
		if sum, err := sumOf(file); err == nil && sum == checksum {
			return file, nil
		}
	}
	if len(found) > 0 {
		return "", fmt.Errorf("%s differs from its checksum in the lock file: delete it", strings.Join(found, ", "))
	}
	return "", fmt.Errorf("cargo has not downloaded it: there is no file %s", pattern)
}
