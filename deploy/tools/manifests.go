package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	chartName   = "kaos-operator"
	chartSource = "deploy/helm/" + chartName + "/"
	// The chart's annotation that names the image with the image's digest. The chart's templates use the annotation.
	imageAnnotation = "kaos.tools/image"
)

// manifests are the files of a release that users give to Helm and kubectl.
type manifests struct {
	chart         contents
	install, crds []byte
}

// manifestsOf makes the manifests of a release from its sources. The chart and install.yaml name the image by its
// digest.
func manifestsOf(from *sources, version, image string) (*manifests, error) {
	made := &manifests{chart: contents{}}
	var crds bytes.Buffer
	for _, name := range sorted(from.files) {
		inside, found := strings.CutPrefix(name, chartSource)
		if !found || strings.HasPrefix(inside, "ci/") || inside == ".helmignore" {
			continue
		}
		made.chart[path.Join(chartName, inside)] = from.files[name]
		if path.Dir(inside) == "files/crds" {
			crds.Write(from.files[name])
		}
	}
	about := made.chart[path.Join(chartName, "Chart.yaml")]
	if !regexp.MustCompile(`(?m)^annotations:\n(  .*\n)+\z`).Match(about) {
		return nil, errors.New("Chart.yaml must end with its annotations")
	}
	made.chart[path.Join(chartName, "Chart.yaml")] = fmt.Appendf(bytes.Clone(about), "  %s: %s\n", imageAnnotation, image)

	named, install := " image: "+repository+":"+version+"\n", from.files["deploy/install.yaml"]
	if bytes.Count(install, []byte(named)) != 1 {
		return nil, fmt.Errorf("deploy/install.yaml must have one line with%s", strings.TrimSuffix(named, "\n"))
	}
	made.install = bytes.ReplaceAll(install, []byte(named), []byte(" image: "+image+"\n"))
	made.crds = crds.Bytes()
	return made, nil
}

// manifestsCommand writes the chart, install.yaml and the CRDs into the folder of a release. The folder must already
// contain the release's sources.
func manifestsCommand(arguments []string) error {
	flags := flag.NewFlagSet("manifests", flag.ExitOnError)
	version := flags.String("version", "", "the version of the release")
	image := flags.String("image", "", "the image with its digest")
	_ = flags.Parse(arguments)
	if flags.NArg() != 1 {
		return errors.New("name the folder of the release")
	}
	folder := flags.Arg(0)
	from, _, err := readSources(filepath.Join(folder, sourceFile(*version)), *version)
	if err != nil {
		return err
	}
	made, err := manifestsOf(from, *version, *image)
	if err != nil {
		return err
	}
	if err := writeFiles(filepath.Join(folder, chartFile(*version)), made.chart, from.at); err != nil {
		return err
	}
	for name, content := range map[string][]byte{installFile: made.install, crdsFile: made.crds} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
