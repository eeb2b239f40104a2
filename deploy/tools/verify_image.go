package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// readLayout unpacks an OCI layout into a folder, and returns the index with the images of all architectures.
func readLayout(archive, folder string) (v1.ImageIndex, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	err = readTar(file, func(header *tar.Header, content []byte) error {
		if header.Typeflag != tar.TypeReg {
			return nil
		}
		if !filepath.IsLocal(header.Name) {
			return fmt.Errorf("the archive has a file outside of its folder: %s", header.Name)
		}
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
	manifest, err := outer.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
		return nil, errors.New("the layout must have one index of images")
	}
	return outer.ImageIndex(manifest.Manifests[0].Digest)
}

func (r *released) checkImage() {
	file := imageFile(r.version)
	if !r.has(file) {
		return
	}
	index, err := readLayout(r.path(file), r.scratch)
	if err == nil {
		err = validate.Index(index)
	}
	if err != nil {
		r.problem(file, "%v", err)
		return
	}
	digest, err := index.Digest()
	if err != nil {
		r.problem(file, "%v", err)
		return
	}
	r.expect(file, "the digest of the image", digest.String(), r.image)
	manifest, err := index.IndexManifest()
	if err != nil {
		r.problem(file, "%v", err)
		return
	}
	for _, entry := range manifest.Manifests {
		platform := entry.Platform.OS + "-" + entry.Platform.Architecture
		image, err := index.Image(entry.Digest)
		if err == nil {
			err = r.checkOneImage(file, platform, image)
		}
		if err != nil {
			r.problem(file, "%s: %v", platform, err)
		}
	}
	for _, platform := range platforms {
		if r.sums[programFile(platform)] != "" && strings.HasPrefix(platform, "linux-") && r.programs[platform] == "" {
			r.problem(file, "the image lacks the program for %s", platform)
		}
	}
	r.checkDocker(file, index)
}

// checkOneImage compares the files and the configuration of an image with those that it must have.
func (r *released) checkOneImage(file, platform string, image v1.Image) error {
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	labels := config.Config.Labels
	r.expect(file, "the commit of the image", labels[revisionLabel], r.commit)
	r.expect(file, "the version of the image", labels[versionLabel], r.version)
	wanted := settings(imageFacts{version: labels[versionLabel], commit: labels[revisionLabel]})
	if !reflect.DeepEqual(config.Config, wanted) {
		r.problem(file, "%s: the configuration of the image is %+v instead of %+v", platform, config.Config, wanted)
	}
	r.expect(file, "the platform of the configuration", config.OS+"-"+config.Architecture, platform)
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	found := map[string]string{}
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			return err
		}
		err = readTar(content, func(header *tar.Header, content []byte) error {
			if header.Uid != 0 || header.Gid != 0 || header.Mode&0o222&^0o200 != 0 {
				r.problem(file, "%s: %s has the owner %d:%d and the mode %o", platform, header.Name, header.Uid, header.Gid, header.Mode)
			}
			if header.Typeflag != tar.TypeDir {
				found[header.Name] = hexSum(content)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(found) != 2 || found[certificatesPath] == "" {
		r.problem(file, "%s: the image has the files %s instead of the program and the certificates", platform, strings.Join(sorted(found), ", "))
	}
	if !r.has(programFile(platform)) {
		return nil
	}
	r.expect(file, "the digest of the program for "+platform, found[programPath], r.sums[programFile(platform)])
	r.programs[platform] = found[programPath]
	return nil
}

// checkDocker checks the list of images for docker: it names the same blobs as the index.
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
