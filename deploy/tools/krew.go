package main

import (
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed krew.yaml.tmpl
var krewText string

type krewPlatform struct{ System, Architecture, File, Sum string }

// krewCommand writes the manifest for krew into the folder of a release. The manifest lists the plugin's archives in
// this folder.
func krewCommand(arguments []string) error {
	flags := flag.NewFlagSet("krew", flag.ExitOnError)
	version := flags.String("version", "", "the version of the release")
	_ = flags.Parse(arguments)
	if flags.NArg() != 1 {
		return fmt.Errorf("name the folder of the release")
	}
	file, err := os.Create(filepath.Join(flags.Arg(0), krewFile))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := writeKrew(file, flags.Arg(0), *version); err != nil {
		return err
	}
	return file.Close()
}

func writeKrew(to io.Writer, folder, version string) error {
	var found []krewPlatform
	for _, platform := range platforms {
		file := pluginFile(platform)
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			continue
		}
		sum, err := sumOf(filepath.Join(folder, file))
		if err != nil {
			return err
		}
		system, architecture, err := splitPlatform(platform)
		if err != nil {
			return err
		}
		found = append(found, krewPlatform{system, architecture, file, sum})
	}
	manifest, err := template.New(krewFile).Parse(krewText)
	if err != nil {
		return err
	}
	return manifest.Execute(to, struct {
		Version, Project string
		Platforms        []krewPlatform
	}{version, project, found})
}
