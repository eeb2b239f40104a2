package main

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// sources are the files of a release's commit. They come from the source archive of the release.
type sources struct {
	files contents
	// The symbolic links with their targets.
	links map[string]string
	// The time of the commit.
	at time.Time
}

// readSources reads the source archive of a version. It returns the sources, and the commit that the archive names.
func readSources(name, version string) (*sources, string, error) {
	read, err := unpack(name)
	if err != nil {
		return nil, "", err
	}
	under := "kaos-operator-" + version + "/"
	found := &sources{contents{}, map[string]string{}, read.modified}
	outside := func(name string) error { return fmt.Errorf("%s is outside of the folder %s", name, under) }
	for name, content := range read.files {
		inside, is := strings.CutPrefix(name, under)
		if !is {
			return nil, "", outside(name)
		}
		found.files[inside] = content
	}
	for name, target := range read.links {
		inside, is := strings.CutPrefix(name, under)
		if !is {
			return nil, "", outside(name)
		}
		found.links[inside] = target
	}
	return found, read.comment, nil
}

// file returns the content of a file. The file, or a folder of its path, may be a symbolic link.
func (s *sources) file(name string) ([]byte, bool) {
	if content, found := s.files[name]; found {
		return content, true
	}
	for at := name; at != "."; at = path.Dir(at) {
		if target, found := s.links[at]; found {
			content, found := s.files[path.Join(path.Dir(at), target, strings.TrimPrefix(name, at))]
			return content, found
		}
	}
	return nil, false
}
