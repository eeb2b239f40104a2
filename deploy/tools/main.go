// Command tools makes and checks the parts of a release that need more than a shell: the image, archives, bills of
// materials, provenance, signatures. deploy/release, deploy/verify and deploy/publish run it.
package main

import (
	"errors"
	"fmt"
	"os"
)

// errRefused ends the program without a further message, because the command has already printed all problems.
var errRefused = errors.New("refused")

var commands = map[string]func(arguments []string) error{
	"archive":    archiveCommand,
	"compare":    compareCommand,
	"compress":   compressCommand,
	"crates":     cratesCommand,
	"finish":     finishCommand,
	"image":      imageCommand,
	"krew":       krewCommand,
	"manifests":  manifestsCommand,
	"provenance": provenanceCommand,
	"push":       pushCommand,
	"sbom":       sbomCommand,
	"sign":       signCommand,
	"verify":     verifyCommand,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: tools archive|compare|compress|crates|finish|image|krew|manifests|provenance|push|sbom|sign|verify …")
		os.Exit(2)
	}
	switch err := commands[os.Args[1]](os.Args[2:]); {
	case errors.Is(err, errRefused):
		os.Exit(1)
	case err != nil:
		fmt.Fprintf(os.Stderr, "deploy/tools %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
