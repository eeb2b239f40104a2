package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	programPath      = "kaos-operator"
	certificatesPath = "etc/ssl/certs/ca-certificates.crt"
	refName          = "org.opencontainers.image.ref.name"
	revisionLabel    = "org.opencontainers.image.revision"
	versionLabel     = "org.opencontainers.image.version"
)

// imageCommand writes the image of all architectures as an OCI layout in a tar archive. It prints the name of the image
// with the image's digest.
func imageCommand(arguments []string) error {
	flags := flag.NewFlagSet("image", flag.ExitOnError)
	to := flags.String("to", "", "the archive to write")
	version := flags.String("version", "", "the version of the release")
	commit := flags.String("commit", "", "the commit of the sources")
	epoch := flags.Int64("epoch", 0, "the time of the image, in seconds")
	_ = flags.Parse(arguments)
	programs := append([]string(nil), flags.Args()...)
	if len(programs) == 0 || *to == "" {
		return fmt.Errorf("name the archive, and a program for each platform, such as linux-amd64=FILE")
	}
	sort.Strings(programs)
	facts := imageFacts{version: *version, commit: *commit, created: time.Unix(*epoch, 0).UTC()}
	index, err := indexOf(programs, facts)
	if err != nil {
		return err
	}
	file, err := os.Create(*to)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := writeLayout(file, index, facts); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s\n", repository, digest)
	return file.Close()
}

type imageFacts struct {
	version, commit string
	created         time.Time
}

func indexOf(programs []string, facts imageFacts) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, pair := range programs {
		platform, file, _ := strings.Cut(pair, "=")
		system, architecture, err := splitPlatform(platform)
		if err != nil {
			return nil, err
		}
		program, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		image, err := imageOf(program, v1.Platform{OS: system, Architecture: architecture}, facts)
		if err != nil {
			return nil, err
		}
		index = withImage(index, image, v1.Platform{OS: system, Architecture: architecture})
	}
	return plain(index)
}

func withImage(index v1.ImageIndex, image v1.Image, platform v1.Platform) v1.ImageIndex {
	return mutate.AppendManifests(index, mutate.IndexAddendum{
		Add: image, Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: &platform},
	})
}

// settings returns the image's configuration with which a container engine starts the program. A test compares this
// configuration with deploy/Dockerfile.
func settings(facts imageFacts) v1.Config {
	return v1.Config{
		User:         "65532:65532",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8081/tcp": {}},
		Entrypoint:   []string{"/" + programPath},
		Cmd:          []string{"run", "--leader-elect"},
		Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		WorkingDir:   "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "kaos-operator",
			"org.opencontainers.image.source":   project,
			"org.opencontainers.image.licenses": "Apache-2.0",
			revisionLabel:                       facts.commit,
			versionLabel:                        facts.version,
		},
	}
}

func imageOf(program []byte, platform v1.Platform, facts imageFacts) (v1.Image, error) {
	roots, err := certificates()
	if err != nil {
		return nil, err
	}
	files, err := layerFiles(program, roots, facts.created)
	if err != nil {
		return nil, err
	}
	return imageWith(files, configOf(files, platform, facts))
}

// imageWith returns the image whose only layer has these files.
func imageWith(files []byte, config *v1.ConfigFile) (v1.Image, error) {
	layer, err := layerOf(files)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, config)
}

// configOf returns the configuration of the image with these files. The configuration contains the digest of the files,
// so two images with the same configuration have the same files.
func configOf(files []byte, platform v1.Platform, facts imageFacts) *v1.ConfigFile {
	at := v1.Time{Time: facts.created}
	return &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Created: at, Config: settings(facts),
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{{Algorithm: "sha256", Hex: hexSum(files)}}},
		History: []v1.History{{Created: at, CreatedBy: "deploy/release " + facts.version}},
	}
}

// layerFiles returns the image's only layer as a tar archive: the program, and the certificates of public authorities.
func layerFiles(program, roots []byte, modified time.Time) ([]byte, error) {
	var written bytes.Buffer
	files := tar.NewWriter(&written)
	parts := strings.Split(path.Dir(certificatesPath), "/")
	for end := range parts {
		name := strings.Join(parts[:end+1], "/") + "/"
		if err := files.WriteHeader(header(name, 0, 0o755, modified)); err != nil {
			return nil, err
		}
	}
	if err := writeFile(files, header(certificatesPath, len(roots), 0o444, modified), roots); err != nil {
		return nil, err
	}
	if err := writeFile(files, header(programPath, len(program), 0o555, modified), program); err != nil {
		return nil, err
	}
	err := files.Close()
	return written.Bytes(), err
}

func layerOf(files []byte) (v1.Layer, error) {
	var packed bytes.Buffer
	compressed := compressor(&packed)
	if _, err := compressed.Write(files); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	content := packed.Bytes()
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer),
	)
}

// namesOf returns the annotations of the layout. skopeo and containerd read the name of the image from these
// annotations.
func namesOf(version string) map[string]string {
	return map[string]string{refName: version, "io.containerd.image.name": repository + ":" + version}
}

// dockerImage is an entry of manifest.json. `docker load` needs this file if docker does not use containerd's image
// store.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func writeLayout(to io.Writer, index v1.ImageIndex, facts imageFacts) error {
	folder, err := os.MkdirTemp("", "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	err = at.AppendIndex(index, layout.WithAnnotations(namesOf(facts.version)))
	if err != nil {
		return err
	}
	listed, err := dockerImages(index, facts.version)
	if err != nil {
		return err
	}
	text, err := json.Marshal(listed)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "manifest.json"), text, 0o644); err != nil {
		return err
	}
	return writeTar(to, folder, "", facts.created)
}

func dockerImages(index v1.ImageIndex, version string) ([]dockerImage, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var listed []dockerImage
	for _, entry := range manifest.Manifests {
		image, err := index.Image(entry.Digest)
		if err != nil {
			return nil, err
		}
		one, err := image.Manifest()
		if err != nil {
			return nil, err
		}
		docker := dockerImage{
			Config:   blob(one.Config.Digest),
			RepoTags: []string{repository + ":" + version + "-" + entry.Platform.Architecture},
		}
		for _, layer := range one.Layers {
			docker.Layers = append(docker.Layers, blob(layer.Digest))
		}
		listed = append(listed, docker)
	}
	return listed, nil
}

func blob(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }
