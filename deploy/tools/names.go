package main

import (
	"fmt"
	"strings"
)

const (
	repository = "ghcr.io/kaos-tools/policy-operator"
	project    = "https://github.com/kaos-tools/policy-operator"

	sumsFile       = "SHA256SUMS"
	keySignature   = sumsFile + ".sig"
	bundleFile     = sumsFile + ".sigstore.json"
	provenanceFile = "provenance.json"
	installFile    = "install.yaml"
	crdsFile       = "crds.yaml"
	krewFile       = "kaos.yaml"
)

func imageFile(version string) string  { return "kaos-operator-" + version + ".oci.tar" }
func chartFile(version string) string  { return "kaos-operator-" + version + ".tgz" }
func sourceFile(version string) string { return "kaos-operator-" + version + "-source.tar.gz" }

// programFile returns the file name of the program for a platform. A platform is an operating system and an
// architecture, with the names that Go and container images use, such as linux-amd64.
func programFile(platform string) string { return "kaos-operator-" + platform }
func sbomFile(platform string) string    { return programFile(platform) + ".cdx.json" }
func pluginFile(platform string) string  { return "kubectl-kaos-" + platform + ".tar.gz" }

var platforms = []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"}

func known(platform string) bool {
	for _, one := range platforms {
		if one == platform {
			return true
		}
	}
	return false
}

// splitPlatform returns the operating system and the architecture of a platform.
func splitPlatform(platform string) (string, string, error) {
	system, architecture, found := strings.Cut(platform, "-")
	if !found || !known(platform) {
		return "", "", fmt.Errorf("%s is not a platform of releases: use %s", platform, strings.Join(platforms, ", "))
	}
	return system, architecture, nil
}
