package main

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// ownGoMod is the go.mod of these tools. It fixes the version of the certificates that the tools put into an image.
//
//go:embed go.mod
var ownGoMod []byte

// unpacked is an OCI layout in a folder.
type unpacked struct {
	outer *v1.IndexManifest
	// The index with the images of all architectures.
	index v1.ImageIndex
	// The names of the files.
	files map[string]bool
}

// readLayout unpacks an OCI layout into a folder.
func readLayout(archive, folder string) (*unpacked, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	read := &unpacked{files: map[string]bool{}}
	err = readTar(file, func(header *tar.Header, content []byte) error {
		if header.Typeflag == tar.TypeDir {
			return nil
		}
		if header.Typeflag != tar.TypeReg || read.files[header.Name] {
			return fmt.Errorf("%s is no file, or a second one", header.Name)
		}
		if !filepath.IsLocal(header.Name) {
			return fmt.Errorf("the archive has a file outside of its folder: %s", header.Name)
		}
		read.files[header.Name] = true
		to := filepath.Join(folder, header.Name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o644)
	})
	if err != nil {
		return nil, err
	}
	outer, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	if read.outer, err = outer.IndexManifest(); err != nil {
		return nil, err
	}
	if len(read.outer.Manifests) != 1 || !read.outer.Manifests[0].MediaType.IsIndex() {
		return nil, errors.New("the layout must have one index of images")
	}
	read.index, err = outer.ImageIndex(read.outer.Manifests[0].Digest)
	return read, err
}

func (r *released) checkImage() {
	file := imageFile(r.version)
	if !r.has(file) {
		return
	}
	read, err := readLayout(r.path(file), r.scratch)
	if err == nil {
		err = r.checkIndex(file, read)
	}
	if err != nil {
		r.problem(file, "%v", err)
		return
	}
	for _, platform := range platforms {
		if r.sums[programFile(platform)] != "" && strings.HasPrefix(platform, "linux-") && !r.inImage[platform] {
			r.problem(file, "the image lacks the program for %s", platform)
		}
	}
	r.checkDocker(file, read.index)
}

// checkIndex checks the images of all architectures, and that the archive has nothing else.
func (r *released) checkIndex(file string, read *unpacked) error {
	if err := validate.Index(read.index); err != nil {
		return err
	}
	digest, err := read.index.Digest()
	if err != nil {
		return err
	}
	r.expect(file, "the digest of the image", digest.String(), r.image)
	if names := read.outer.Manifests[0].Annotations; !maps.Equal(names, namesOf(r.version)) {
		r.problem(file, "the layout has the names %v instead of %v", names, namesOf(r.version))
	}
	manifest, err := read.index.IndexManifest()
	if err != nil {
		return err
	}
	known := map[string]bool{"index.json": true, "oci-layout": true, "manifest.json": true, blob(digest): true}
	for _, entry := range manifest.Manifests {
		if entry.Platform == nil || !entry.MediaType.IsImage() {
			return fmt.Errorf("the index has an entry without a platform: %s", entry.Digest)
		}
		platform := entry.Platform.OS + "-" + entry.Platform.Architecture
		image, err := read.index.Image(entry.Digest)
		if err == nil {
			known[blob(entry.Digest)] = true
			err = r.checkOneImage(file, platform, image, known)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
	}
	for _, name := range sorted(read.files) {
		if !known[name] {
			r.problem(file, "the archive has a further file %s", name)
		}
	}
	return nil
}

// checkOneImage checks the image of one platform. From the released program, it makes the files and the configuration
// again, and compares them with the files and the configuration in the image.
func (r *released) checkOneImage(file, platform string, image v1.Image, known map[string]bool) error {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	if len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != types.OCILayer || len(manifest.Annotations) > 0 ||
		len(manifest.Layers[0].URLs) > 0 {
		return errors.New("the image has something else than one layer")
	}
	known[blob(manifest.Config.Digest)], known[blob(manifest.Layers[0].Digest)] = true, true
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	if !r.has(programFile(platform)) {
		return nil
	}
	program, err := os.ReadFile(r.path(programFile(platform)))
	if err != nil {
		return err
	}
	layer, err := image.LayerByDigest(manifest.Layers[0].Digest)
	if err != nil {
		return err
	}
	is, roots, err := r.readLayer(file, platform, layer)
	if err != nil {
		return err
	}
	facts := imageFacts{version: r.version, commit: r.commit, created: r.sources.at.UTC()}
	files, err := layerFiles(program, roots, facts.created)
	if err != nil {
		return err
	}
	if !bytes.Equal(is, files) {
		r.problem(file, "%s: the image has something else than the program and the certificates, or other owners, modes or times", platform)
	}
	system, architecture, err := splitPlatform(platform)
	if err != nil {
		return err
	}
	wanted := configOf(files, v1.Platform{OS: system, Architecture: architecture}, facts)
	r.expect(file, "the commit of the image", config.Config.Labels[revisionLabel], r.commit)
	r.expect(file, "the version of the image", config.Config.Labels[versionLabel], r.version)
	if !config.Created.Equal(wanted.Created.Time) {
		r.problem(file, "%s: the time of the image is %s instead of %s", platform, config.Created, wanted.Created)
	}
	if plainText(config) != plainText(wanted) {
		r.problem(file, "%s: the configuration of the image is %s instead of %s", platform, plainText(config), plainText(wanted))
	}
	r.inImage[platform] = true
	return nil
}

func plainText(of any) string {
	text, _ := json.Marshal(of)
	return string(text)
}

// readLayer returns the files of a layer as a tar archive, and the certificates among them.
func (r *released) readLayer(file, platform string, layer v1.Layer) ([]byte, []byte, error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return nil, nil, err
	}
	defer content.Close()
	is, err := io.ReadAll(content)
	if err != nil {
		return nil, nil, err
	}
	var roots []byte
	var program string
	err = readTar(bytes.NewReader(is), func(header *tar.Header, content []byte) error {
		switch header.Name {
		case certificatesPath:
			roots = content
		case programPath:
			program = hexSum(content)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	r.expect(file, "the digest of the program for "+platform, program, r.sums[programFile(platform)])
	return is, roots, r.checkCertificates(file, roots)
}

// checkCertificates compares the image's certificates with the certificates that these tools contain. If the sources of
// the release fix another version of the certificates, checkCertificates tells the user that it compared nothing.
func (r *released) checkCertificates(file string, roots []byte) error {
	released, err := certificatesVersion(r.sources.files["deploy/tools/go.mod"])
	if err != nil {
		return err
	}
	own, err := certificatesVersion(ownGoMod)
	if err != nil {
		return err
	}
	if released != own {
		r.unchecked("the image must have the certificates of %s, and these tools have those of %s: use the tools of the release's tag",
			released, own)
		return nil
	}
	wanted, err := certificates()
	if err == nil && !bytes.Equal(roots, wanted) {
		r.problem(file, "the image has other certificates than the sources fix")
	}
	return err
}

// checkDocker checks manifest.json, the list of images for docker. The list must name the same blobs as the index.
func (r *released) checkDocker(file string, index v1.ImageIndex) {
	text, err := os.ReadFile(filepath.Join(r.scratch, "manifest.json"))
	if err != nil {
		r.problem(file, "%v", err)
		return
	}
	var listed []dockerImage
	wanted, err := dockerImages(index, r.version)
	if err == nil {
		err = json.Unmarshal(text, &listed)
	}
	if err != nil || !reflect.DeepEqual(listed, wanted) {
		r.problem(file, "manifest.json names other images than the index: %s %v", text, err)
	}
}
