package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"sigs.k8s.io/yaml"
)

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// imageAnnotation is the annotation of the chart that names the image with its digest. The chart's templates use it.
const imageAnnotation = "kaos.tools/image"

func (r *released) checkManifests() {
	image := repository + "@" + r.image
	file := chartFile(r.version)
	if !r.has(file) || !r.has(installFile) || !r.has(crdsFile) {
		return
	}
	files, _, err := filesOf(r.path(file))
	if err != nil {
		r.problem(file, "%v", err)
		return
	}
	var chart struct {
		Version, AppVersion string
		Annotations         map[string]string
	}
	if err := yaml.Unmarshal(files["kaos-operator/Chart.yaml"], &chart); err != nil {
		r.problem(file, "Chart.yaml: %v", err)
		return
	}
	r.expect(file, "the version of the chart", chart.Version, r.version)
	r.expect(file, "the appVersion of the chart", chart.AppVersion, r.version)
	r.expect(file, "the image of the chart", chart.Annotations[imageAnnotation], image)

	text, err := os.ReadFile(r.path(installFile))
	if err != nil {
		r.problem(installFile, "%v", err)
	} else if strings.Count(string(text), " image: "+image+"\n") != 1 {
		r.problem(installFile, "the operator's image is not %s", image)
	}
	var crds bytes.Buffer
	for _, name := range sorted(files) {
		if path.Dir(name) == "kaos-operator/files/crds" {
			crds.Write(files[name])
		}
	}
	if crds.Len() == 0 || hexSum(crds.Bytes()) != r.sums[crdsFile] {
		r.problem(crdsFile, "the CRDs differ from those of the chart")
	}
}

func (r *released) checkSources() {
	file := sourceFile(r.version)
	files, commit, err := filesOf(r.path(file))
	if err != nil {
		r.problem(file, "%v", err)
		return
	}
	r.expect(file, "the commit in the archive", commit, r.commit)
	under := "kaos-operator-" + r.version
	for name := range files {
		if !strings.HasPrefix(name, under+"/") {
			r.problem(file, "%s is outside of the folder %s", name, under)
		}
	}
	if r.repository != "" {
		if err := r.equalsRepository(file, under); err != nil {
			r.problem(file, "%v", err)
		}
	}
	crates := 0
	for _, name := range sorted(r.sums) {
		if strings.HasSuffix(name, ".crate") {
			crates++
			r.checkCrate(name)
		}
	}
	if crates == 0 {
		r.problem(r.folder, "the release has no crates")
	}
}

// equalsRepository compares the sources with the commit in a repository.
func (r *released) equalsRepository(file, under string) error {
	git := exec.Command("git", "-C", r.repository, "archive", "--format=tar", "--prefix="+under+"/", r.commit)
	wanted, err := git.Output()
	if err != nil {
		fmt.Printf("the repository does not have the commit %s, so the sources were not compared with it\n", r.commit)
		return nil
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

func (r *released) checkCrate(name string) {
	files, _, err := filesOf(r.path(name))
	if err != nil {
		r.problem(name, "%v", err)
		return
	}
	under := strings.TrimSuffix(name, ".crate")
	if files[path.Join(under, "Cargo.toml")] == nil {
		r.problem(name, "the archive has no %s/Cargo.toml", under)
	}
	var from struct {
		Git struct {
			SHA1  string
			Dirty bool
		}
	}
	if err := json.Unmarshal(files[path.Join(under, ".cargo_vcs_info.json")], &from); err != nil {
		r.problem(name, ".cargo_vcs_info.json: %v", err)
		return
	}
	r.expect(name, "the commit", from.Git.SHA1, r.commit)
	if from.Git.Dirty {
		r.problem(name, "the crate comes from changed sources")
	}
}

func (r *released) checkPlugin() {
	for _, platform := range platforms {
		file := pluginFile(platform)
		if r.sums[programFile(platform)] == "" || !r.has(file) {
			continue
		}
		files, _, err := filesOf(r.path(file))
		if err != nil {
			r.problem(file, "%v", err)
			continue
		}
		r.expect(file, "the digest of kubectl-kaos", hexSum(files["kubectl-kaos"]), r.sums[programFile(platform)])
		for _, needed := range []string{"LICENSE", "man/kubectl-kaos.1"} {
			if len(files[needed]) == 0 {
				r.problem(file, "the archive has no %s", needed)
			}
		}
	}
	var wanted bytes.Buffer
	if err := writeKrew(&wanted, r.folder, r.version); err != nil {
		r.problem(krewFile, "%v", err)
	} else if r.has(krewFile) && hexSum(wanted.Bytes()) != r.sums[krewFile] {
		r.problem(krewFile, "the manifest differs from the plugin's archives")
	}
}
