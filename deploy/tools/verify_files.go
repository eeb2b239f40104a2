package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path"
)

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// checkNames notes a problem for each file that does not belong to a release. For crates, checkCrates does this.
func (r *released) checkNames() {
	known := map[string]bool{
		provenanceFile: true, installFile: true, crdsFile: true, krewFile: true,
		imageFile(r.version): true, chartFile(r.version): true, sourceFile(r.version): true,
	}
	for _, platform := range platforms {
		known[programFile(platform)], known[sbomFile(platform)], known[pluginFile(platform)] = true, true, true
	}
	for _, name := range sorted(r.sums) {
		if !known[name] && path.Ext(name) != ".crate" {
			r.problem(name, "a release has no such file")
		}
	}
}

// checkManifests makes the manifests again from the sources and the image, and compares them with those of the release.
func (r *released) checkManifests() {
	file := chartFile(r.version)
	if !r.has(file) || !r.has(installFile) || !r.has(crdsFile) {
		return
	}
	wanted, err := manifestsOf(r.sources, r.version, repository+"@"+r.image)
	if err != nil {
		r.problem(sourceFile(r.version), "%v", err)
		return
	}
	chart, err := unpack(r.path(file))
	if err != nil {
		r.problem(file, "%v", err)
		return
	}
	for name := range chart.links {
		r.problem(file, "%s is a link", name)
	}
	r.sameFiles(file, chart.files, wanted.chart)
	for name, content := range map[string][]byte{installFile: wanted.install, crdsFile: wanted.crds} {
		is, err := os.ReadFile(r.path(name))
		if err != nil || !bytes.Equal(is, content) {
			r.problem(name, "the file differs from that of the sources with the image %s@%s", repository, r.image)
		}
	}
}

// sameFiles notes a problem for each difference between the files of an archive and the wanted files.
func (r *released) sameFiles(archive string, is, wanted contents) {
	for _, name := range sorted(is) {
		if _, found := wanted[name]; !found {
			r.problem(archive, "the archive has a further file %s", name)
		} else if !bytes.Equal(is[name], wanted[name]) {
			r.problem(archive, "%s differs from that of the sources", name)
		}
	}
	for _, name := range sorted(wanted) {
		if _, found := is[name]; !found {
			r.problem(archive, "the archive has no %s", name)
		}
	}
}

// checkPlugin checks the archives of kubectl's plugin, and krew's manifest. The sources do not contain the man pages,
// because the program generates them. So checkPlugin only checks that the man pages are the same in all archives.
func (r *released) checkPlugin() {
	var pages contents
	for _, platform := range platforms {
		file := pluginFile(platform)
		if r.sums[programFile(platform)] == "" {
			if r.sums[file] != "" {
				r.problem(file, "the release has no program for %s", platform)
			}
			continue
		}
		if !r.has(file) {
			continue
		}
		plugin, err := unpack(r.path(file))
		if err != nil {
			r.problem(file, "%v", err)
			continue
		}
		r.expect(file, "the digest of kubectl-kaos", hexSum(plugin.files["kubectl-kaos"]), r.sums[programFile(platform)])
		found := contents{}
		for name, content := range plugin.files {
			if isPage, _ := path.Match("man/kubectl-kaos*.1", name); isPage && len(content) > 0 {
				found[name] = content
				delete(plugin.files, name)
			}
			if plugin.programs[name] != (name == "kubectl-kaos") {
				r.problem(file, "only kubectl-kaos is a program, and not %s", name)
			}
		}
		r.sameFiles(file, plugin.files, contents{"LICENSE": r.sources.files["LICENSE"], "kubectl-kaos": plugin.files["kubectl-kaos"]})
		if pages == nil {
			pages = found
		}
		if found["man/kubectl-kaos.1"] == nil {
			r.problem(file, "the archive has no man/kubectl-kaos.1")
		}
		for _, name := range sorted(found) {
			if !bytes.Equal(found[name], pages[name]) || len(found) != len(pages) {
				r.problem(file, "the page %s differs from that in another archive", name)
			}
		}
		for name := range plugin.links {
			r.problem(file, "%s is a link", name)
		}
	}
	var wanted bytes.Buffer
	if err := writeKrew(&wanted, r.folder, r.version); err != nil {
		r.problem(krewFile, "%v", err)
	} else if r.has(krewFile) && hexSum(wanted.Bytes()) != r.sums[krewFile] {
		r.problem(krewFile, "the manifest differs from the plugin's archives")
	}
}
