package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	guide         = project + "/blob/main/docs/guide/verify-a-release.md"
	buildType     = guide + "#provenance"
	byHand        = guide + "#by-hand"
)

type digests struct {
	SHA256    string `json:"sha256,omitempty"`
	GitCommit string `json:"gitCommit,omitempty"`
}

type resource struct {
	Name   string   `json:"name,omitempty"`
	URI    string   `json:"uri,omitempty"`
	Digest *digests `json:"digest,omitempty"`
}

// statement is the provenance of a release, as in-toto and SLSA define it.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     struct {
		BuildDefinition buildDefinition `json:"buildDefinition"`
		RunDetails      runDetails      `json:"runDetails"`
	} `json:"predicate"`
}

type buildDefinition struct {
	BuildType            string             `json:"buildType"`
	ExternalParameters   externalParameters `json:"externalParameters"`
	InternalParameters   internalParameters `json:"internalParameters"`
	ResolvedDependencies []resource         `json:"resolvedDependencies"`
}

type externalParameters struct {
	Version    string `json:"version"`
	Repository string `json:"repository"`
}

type internalParameters struct {
	// The platforms whose programs deploy/release did not build, because its caller gave it the built programs.
	Given []string `json:"givenPrograms"`
}

type runDetails struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
	Metadata *struct {
		InvocationID string `json:"invocationId"`
	} `json:"metadata,omitempty"`
}

func (s *statement) version() string { return s.Predicate.BuildDefinition.ExternalParameters.Version }

// source returns the sources from which the release was built.
func (s *statement) source() resource {
	for _, source := range s.Predicate.BuildDefinition.ResolvedDependencies {
		if source.Digest != nil && source.Digest.GitCommit != "" {
			return source
		}
	}
	return resource{Digest: &digests{}}
}

func (s *statement) commit() string { return s.source().Digest.GitCommit }

func (s *statement) origin() string { return s.source().URI }

// provenanceCommand writes the provenance of all files in the folder of a release. The provenance contains no time, so
// two people who make the same release by hand get the same provenance.
func provenanceCommand(arguments []string) error {
	flags := flag.NewFlagSet("provenance", flag.ExitOnError)
	version := flags.String("version", "", "the version of the release")
	commit := flags.String("commit", "", "the commit of the sources")
	image := flags.String("image", "", "the name of the image with its digest")
	given := flags.String("given", "", "the platforms whose programs were given, separated by spaces")
	tools := flags.String("tools", "", "the versions of the tools, separated by commas")
	_ = flags.Parse(arguments)
	if flags.NArg() != 1 {
		return fmt.Errorf("name the folder of the release")
	}
	sums, err := sumsOf(flags.Arg(0))
	if err != nil {
		return err
	}
	delete(sums, provenanceFile)
	said := statement{Type: statementType, PredicateType: predicateType}
	for _, name := range sorted(sums) {
		said.Subject = append(said.Subject, resource{Name: name, Digest: &digests{SHA256: sums[name]}})
	}
	if name, digest, found := strings.Cut(*image, "@sha256:"); found {
		said.Subject = append(said.Subject, resource{Name: name, Digest: &digests{SHA256: digest}})
	}
	build := &said.Predicate.BuildDefinition
	build.BuildType = buildType
	build.ExternalParameters = externalParameters{*version, project}
	build.InternalParameters.Given = append([]string{}, strings.Fields(*given)...)
	sort.Strings(build.InternalParameters.Given)
	build.ResolvedDependencies = []resource{{URI: "git+" + project, Digest: &digests{GitCommit: *commit}}}
	for _, tool := range strings.Split(*tools, ",") {
		if tool != "" {
			build.ResolvedDependencies = append(build.ResolvedDependencies, resource{Name: tool})
		}
	}
	run := &said.Predicate.RunDetails
	run.Builder.ID = byHand
	if workflow := os.Getenv("GITHUB_WORKFLOW_REF"); os.Getenv("GITHUB_ACTIONS") == "true" && workflow != "" {
		server := os.Getenv("GITHUB_SERVER_URL")
		run.Builder.ID = server + "/" + workflow
		run.Metadata = &struct {
			InvocationID string `json:"invocationId"`
		}{server + "/" + os.Getenv("GITHUB_REPOSITORY") + "/actions/runs/" + os.Getenv("GITHUB_RUN_ID")}
	}
	text, err := json.MarshalIndent(said, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(flags.Arg(0), provenanceFile), append(text, '\n'), 0o644)
}
