package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// released is a release in a folder, whose sums are correct.
type released struct {
	folder, version, commit string
	sums                    map[string]string
	said                    *statement
	// The folder for the unpacked image.
	scratch string
	// The digest of the image, and its programs by platform.
	image    string
	programs map[string]string
	problems []string
	// The directory of the repository, if the sources can be compared with it.
	repository string
}

func (r *released) path(name string) string { return filepath.Join(r.folder, name) }

// problem notes what is wrong with a file.
func (r *released) problem(file, format string, arguments ...any) {
	r.problems = append(r.problems, file+": "+fmt.Sprintf(format, arguments...))
}

// expect notes a problem if two texts differ.
func (r *released) expect(file, what, is, wanted string) {
	if is != wanted {
		r.problem(file, "%s is %q instead of %q", what, is, wanted)
	}
}

// has tells whether the release has a file, and notes a problem if it lacks the file.
func (r *released) has(name string) bool {
	if r.sums[name] != "" {
		return true
	}
	r.problem(name, "the release lacks this file")
	return false
}

// The checks after the sums and the signature. Each check relies on the checks before it.
var checks = []struct {
	says string
	run  func(*released)
}{
	{"the provenance names every file, and one commit", (*released).checkProvenance},
	{"the image is complete, and its programs are the released programs", (*released).checkImage},
	{"the bills of materials list the crates of the programs and of the lock files", (*released).checkBills},
	{"the chart, install.yaml and the CRDs belong to this version and this image", (*released).checkManifests},
	{"the sources and the crates are those of the commit", (*released).checkSources},
	{"the plugin is the released program, and krew's manifest has its digests", (*released).checkPlugin},
}

// verifyCommand checks a release, prints each check, and names the files with problems.
func verifyCommand(arguments []string) error {
	flags := flag.NewFlagSet("verify", flag.ExitOnError)
	key := flags.String("key", "", "the public key that signed the release")
	identity := flags.String("identity", "", "the identity that signed the release")
	issuer := flags.String("issuer", projectIssuer, "the service that vouched for the identity")
	trusted := flags.String("trusted-root", "", "a file with Sigstore's roots of trust, to need no network")
	unsigned := flags.Bool("unsigned", false, "check no signature")
	checkout := flags.String("repository", "", "the repository with the commit, to compare the sources")
	_ = flags.Parse(arguments)
	if flags.NArg() != 1 {
		return errors.New("name the folder of the release")
	}
	r := &released{folder: flags.Arg(0), repository: *checkout, programs: map[string]string{}}
	r.checkSums()
	if err := r.report("every file has its digest in " + sumsFile); err != nil {
		return err
	}
	if err := r.readProvenance(); err != nil {
		return err
	}
	switch {
	case *unsigned:
		fmt.Println("no signature was checked: anybody can have made this release")
	case *key != "":
		if err := fitsKey(r.folder, *key); err != nil {
			return err
		}
		fmt.Printf("ok: the owner of %s signed the release\n", *key)
	default:
		if *identity == "" {
			*identity = projectIdentity + r.version
		}
		if err := fitsIdentity(r.folder, *identity, *issuer, *trusted); err != nil {
			return err
		}
		fmt.Printf("ok: %s signed the release\n", *identity)
	}
	var err error
	if r.scratch, err = os.MkdirTemp("", "release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	for _, check := range checks {
		check.run(r)
		if err := r.report(check.says); err != nil {
			return err
		}
	}
	build := r.said.Predicate.BuildDefinition
	for _, platform := range build.InternalParameters.Given {
		fmt.Printf("the program for %s was given: the release does not say how it was built\n", platform)
	}
	fmt.Printf("kaos-operator %s, commit %s, image %s@%s, made by %s\n",
		r.version, r.commit, repository, r.image, r.said.Predicate.RunDetails.Builder.ID)
	return nil
}

func (r *released) report(says string) error {
	if len(r.problems) == 0 {
		fmt.Println("ok: " + says)
		return nil
	}
	fmt.Println("FAILED: " + says)
	fmt.Println(strings.Join(r.problems, "\n"))
	return errRefused
}

func (r *released) checkSums() {
	listed, err := readSums(r.folder)
	if err != nil {
		r.problem(sumsFile, "%v", err)
		return
	}
	if r.sums, err = sumsOf(r.folder); err != nil {
		r.problem(r.folder, "%v", err)
		return
	}
	for _, name := range sorted(listed) {
		if r.sums[name] == "" {
			r.problem(name, "%s lists this file, but the release lacks it", sumsFile)
		} else if r.sums[name] != listed[name] {
			r.problem(name, "the file has another digest than in %s: %s", sumsFile, r.sums[name])
		}
	}
	for _, name := range sorted(r.sums) {
		if listed[name] == "" {
			r.problem(name, "%s does not list this file", sumsFile)
		}
	}
}

func (r *released) readProvenance() error {
	text, err := os.ReadFile(r.path(provenanceFile))
	if err != nil {
		return err
	}
	r.said = &statement{}
	if err := json.Unmarshal(text, r.said); err != nil {
		return fmt.Errorf("%s: %w", provenanceFile, err)
	}
	r.version, r.commit = r.said.version(), r.said.commit()
	return nil
}

var (
	isCommit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	isVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
)

func (r *released) checkProvenance() {
	r.expect(provenanceFile, "the type", r.said.Type, statementType)
	r.expect(provenanceFile, "the type of the predicate", r.said.PredicateType, predicateType)
	if !isVersion.MatchString(r.version) {
		r.problem(provenanceFile, "%q is not a version", r.version)
	}
	if !isCommit.MatchString(r.commit) {
		r.problem(provenanceFile, "%q is not a commit", r.commit)
	}
	said := map[string]string{}
	for _, subject := range r.said.Subject {
		if subject.Digest != nil {
			said[subject.Name] = subject.Digest.SHA256
		}
	}
	for _, name := range sorted(r.sums) {
		if name != provenanceFile && said[name] != r.sums[name] {
			r.problem(name, "%s has another digest of this file", provenanceFile)
		}
	}
	for _, name := range sorted(said) {
		if r.sums[name] == "" && name != repository {
			r.problem(name, "%s names this file, but the release lacks it", provenanceFile)
		}
	}
	r.image = "sha256:" + said[repository]
}
