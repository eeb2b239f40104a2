package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// checkSources reads the sources, and compares them with the commit in the repository. The later checks compare the
// other files with these sources.
func (r *released) checkSources() {
	file := sourceFile(r.version)
	if !r.has(file) {
		return
	}
	read, commit, err := readSources(r.path(file), r.version)
	if err != nil {
		r.problem(file, "%v", err)
		return
	}
	r.sources = read
	r.expect(file, "the commit in the archive", commit, r.commit)
	if r.repository == "" {
		r.unchecked("nothing compared the sources with the commit in a repository")
		return
	}
	if err := r.equalsRepository(file); err != nil {
		r.problem(file, "%v", err)
	} else {
		fmt.Printf("ok: the sources are those of the commit in %s\n", r.repository)
	}
	if err := r.checkTag(); err != nil {
		r.problem(provenanceFile, "%v", err)
	}
}

// git runs a command of git in the repository. It overrides the user's settings that would change the result.
func (r *released) git(arguments ...string) ([]byte, error) {
	plain := []string{"-C", r.repository, "-c", "tar.umask=0002", "-c", "core.autocrlf=false", "-c", "core.eol=lf", "-c", "core.attributesFile="}
	text, err := exec.Command("git", append(plain, arguments...)...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(failed.Stderr))
	}
	return text, err
}

// equalsRepository compares the sources with the commit.
func (r *released) equalsRepository(file string) error {
	if _, err := r.git("cat-file", "-e", r.commit+"^{commit}"); err != nil {
		return fmt.Errorf("%s does not have the commit %s: fetch it, name another repository with --repository, or add --no-repository (%w)",
			r.repository, r.commit, err)
	}
	wanted, err := r.git("archive", "--format=tar", "--prefix=kaos-operator-"+r.version+"/", r.commit)
	if err != nil {
		return fmt.Errorf("git archive: %w", err)
	}
	opened, err := os.Open(r.path(file))
	if err != nil {
		return err
	}
	defer opened.Close()
	unpacked, err := gzip.NewReader(opened)
	if err != nil {
		return err
	}
	is, err := io.ReadAll(unpacked)
	if err != nil {
		return err
	}
	if !bytes.Equal(is, wanted) {
		return fmt.Errorf("the sources differ from the commit %s in %s", r.commit, r.repository)
	}
	return nil
}

// checkTag checks that the version's tag names the commit of the release. If the project signed the release, the tag
// must exist.
func (r *released) checkTag() error {
	tag := "v" + r.version
	text, err := r.git("rev-parse", "--verify", "--quiet", "refs/tags/"+tag+"^{commit}")
	switch is := strings.TrimSpace(string(text)); {
	case err != nil && r.signer == projectIdentity+r.version:
		return fmt.Errorf("%s does not have the tag %s: run git fetch --tags", r.repository, tag)
	case err != nil:
		r.unchecked("%s does not have the tag %s", r.repository, tag)
	case is != r.commit:
		return fmt.Errorf("the tag %s is the commit %s, and the release is of %s", tag, is, r.commit)
	}
	return nil
}

// checkCrates compares the files of each crate with the sources. cargo itself writes two of the files: Cargo.toml, and
// .cargo_vcs_info.json, which names the commit. The crate also contains the original Cargo.toml, as Cargo.toml.orig.
func (r *released) checkCrates() {
	wanted, err := r.sources.publishedCrates()
	if err != nil {
		r.problem(sourceFile(r.version), "%v", err)
		return
	}
	for _, name := range sorted(wanted) {
		if r.has(name) {
			r.checkCrate(wanted[name])
		}
	}
	for _, name := range sorted(r.sums) {
		if _, found := wanted[name]; !found && path.Ext(name) == ".crate" {
			r.problem(name, "the sources publish no such crate")
		}
	}
}

func (r *released) checkCrate(one publishedCrate) {
	file := one.file()
	read, err := unpack(r.path(file))
	if err != nil {
		r.problem(file, "%v", err)
		return
	}
	for name := range read.links {
		r.problem(file, "%s is a link", name)
	}
	under := strings.TrimSuffix(file, ".crate")
	var files []string
	for name := range read.files {
		files = append(files, strings.TrimPrefix(name, under+"/"))
	}
	for _, name := range sorted(read.files) {
		content, inside := read.files[name], strings.TrimPrefix(name, under+"/")
		switch inside {
		case ".cargo_vcs_info.json":
			r.checkOrigin(one, content)
			continue
		case "Cargo.toml":
			packaged, err := readManifest(content)
			if err != nil {
				r.problem(file, "Cargo.toml: %v", err)
				continue
			}
			for _, what := range one.differences(packaged, files) {
				r.problem(file, "Cargo.toml: %s differs from that of the sources", what)
			}
			continue
		case "Cargo.toml.orig":
			inside = "Cargo.toml"
		}
		wanted, found := r.sources.file(path.Join(one.folder, inside))
		if name == inside || !found {
			r.problem(file, "%s is not in the sources", name)
		} else if !bytes.Equal(content, wanted) {
			r.problem(file, "%s differs from that of the sources", name)
		}
	}
	for _, needed := range []string{"Cargo.toml", "Cargo.toml.orig", ".cargo_vcs_info.json"} {
		if !slices.Contains(files, needed) {
			r.problem(file, "the crate has no %s", needed)
		}
	}
}

func (r *released) checkOrigin(one publishedCrate, text []byte) {
	var from struct {
		Git struct {
			SHA1  string
			Dirty bool
		}
		Path string `json:"path_in_vcs"`
	}
	if err := json.Unmarshal(text, &from); err != nil {
		r.problem(one.file(), ".cargo_vcs_info.json: %v", err)
		return
	}
	r.expect(one.file(), "the commit", from.Git.SHA1, r.commit)
	r.expect(one.file(), "the folder in the sources", from.Path, one.folder)
	if from.Git.Dirty {
		r.problem(one.file(), "the crate comes from changed sources")
	}
}
