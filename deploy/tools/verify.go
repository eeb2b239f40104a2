package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// released is a release in a folder. The checks store their results in this value.
type released struct {
	folder, version, commit string
	sums                    map[string]string
	said                    *statement
	// The identity that signed the release.
	signer string
	// The folder for the unpacked image.
	scratch string
	// The digest of the image, and the platforms of its programs.
	image    string
	inImage  map[string]bool
	problems []string
	// The directory of the git repository. checkSources compares the sources of the release with this repository.
	repository string
	sources    *sources
}

func (r *released) path(name string) string { return filepath.Join(r.folder, name) }

// problem notes what is wrong with a file.
func (r *released) problem(file, format string, arguments ...any) {
	r.problems = append(r.problems, file+": "+fmt.Sprintf(format, arguments...))
}

// unchecked tells the user what the command did not check.
func (r *released) unchecked(format string, arguments ...any) {
	fmt.Printf("NOT CHECKED: "+format+"\n", arguments...)
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

// checks are the checks that run after the checks of the sums and of the signature. Each check relies on the checks
// before it.
var checks = []struct {
	says string
	run  func(*released)
}{
	{"the provenance names every file, and one commit", (*released).checkProvenance},
	{"the sources name the commit of the provenance", (*released).checkSources},
	{"the crates are those of the sources", (*released).checkCrates},
	{"the image is complete, and its programs are the released programs", (*released).checkImage},
	{"the bills of materials list the crates of the programs and of the lock files", (*released).checkBills},
	{"the chart, install.yaml and the CRDs are those of the sources, with this image", (*released).checkManifests},
	{"the plugin is the released program, and krew's manifest has its digests", (*released).checkPlugin},
}

// signatures are the options that say who must have signed a release.
type signatures struct {
	key, identity, issuer, trusted string
	unsigned                       bool
}

// verifyCommand checks a release, prints each check, and names the files with problems.
func verifyCommand(arguments []string) error {
	var by signatures
	flags := flag.NewFlagSet("verify", flag.ExitOnError)
	version := flags.String("version", "", "the version that the release must have")
	flags.StringVar(&by.key, "key", "", "the public key that signed the release")
	flags.StringVar(&by.identity, "identity", "", "the identity that signed the release")
	flags.StringVar(&by.issuer, "issuer", projectIssuer, "the service that vouched for the identity")
	flags.StringVar(&by.trusted, "trusted-root", "", "a file with Sigstore's roots of trust, to need no network")
	flags.BoolVar(&by.unsigned, "unsigned", false, "check no signature")
	checkout := flags.String("repository", "", "the repository with the commit, to compare the sources")
	alone := flags.Bool("no-repository", false, "compare the sources with no repository")
	_ = flags.Parse(arguments)
	if flags.NArg() != 1 {
		return errors.New("name the folder of the release")
	}
	given := map[string]bool{}
	flags.Visit(func(one *flag.Flag) { given[one.Name] = true })
	if err := contradiction(given); err != nil {
		return err
	}
	r := &released{folder: flags.Arg(0), inImage: map[string]bool{}}
	if !*alone {
		r.repository = *checkout
	}
	if err := r.readProvenance(); err != nil {
		return err
	}
	fmt.Printf("this release says that it is kaos-operator %s\n", r.version)
	if want := strings.TrimPrefix(*version, "v"); want != "" && want != r.version {
		return fmt.Errorf("%s: the version is %s instead of %s", provenanceFile, r.version, want)
	}
	r.checkSums()
	if err := r.report("every file has its digest in " + sumsFile); err != nil {
		return err
	}
	if err := r.checkSignature(by); err != nil {
		return err
	}
	return r.checkAll()
}

// contradiction returns an error if the user gave two options that exclude each other: one of them would have no
// effect.
func contradiction(given map[string]bool) error {
	for _, pair := range [][2]string{
		{"unsigned", "key"}, {"unsigned", "identity"}, {"unsigned", "issuer"}, {"unsigned", "trusted-root"},
		{"key", "identity"}, {"key", "issuer"}, {"key", "trusted-root"},
	} {
		if given[pair[0]] && given[pair[1]] {
			return fmt.Errorf("use --%s or --%s, and not both", pair[0], pair[1])
		}
	}
	return nil
}

func (r *released) checkSignature(by signatures) error {
	switch {
	case by.unsigned:
		r.unchecked("anybody can have made this release: no signature was checked")
		return nil
	case by.key != "":
		if err := fitsKey(r.folder, by.key); err != nil {
			return err
		}
		fmt.Printf("ok: the owner of %s signed the release\n", by.key)
		return nil
	}
	if r.signer = by.identity; r.signer == "" {
		r.signer = projectIdentity + r.version
	}
	if err := fitsIdentity(r.folder, r.signer, by.issuer, r.commit, by.trusted); err != nil {
		return err
	}
	fmt.Printf("ok: %s signed the release\n", r.signer)
	return nil
}

func (r *released) checkAll() error {
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
	if !isVersion.MatchString(r.version) {
		return fmt.Errorf("%s: %q is not a version", provenanceFile, r.version)
	}
	if !isCommit.MatchString(r.commit) {
		return fmt.Errorf("%s: %q is not a commit", provenanceFile, r.commit)
	}
	return nil
}

var (
	isCommit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	isVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
)

func (r *released) checkProvenance() {
	r.expect(provenanceFile, "the type", r.said.Type, statementType)
	r.expect(provenanceFile, "the type of the predicate", r.said.PredicateType, predicateType)
	build := r.said.Predicate.BuildDefinition
	r.expect(provenanceFile, "the type of the build", build.BuildType, buildType)
	r.expect(provenanceFile, "the repository", build.ExternalParameters.Repository, project)
	r.expect(provenanceFile, "the origin of the commit", r.said.origin(), "git+"+project)
	// If the project's workflow signed the release, the workflow must also have built it. Another signer may have built
	// the release by hand.
	builders := []string{r.signer}
	if r.signer != projectIdentity+r.version {
		builders = append(builders, byHand)
	}
	if builder := r.said.Predicate.RunDetails.Builder.ID; r.signer != "" && !slices.Contains(builders, builder) {
		r.problem(provenanceFile, "the builder is %q instead of %s", builder, strings.Join(builders, " or "))
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
	r.checkNames()
}
