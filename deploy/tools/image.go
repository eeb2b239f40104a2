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

// imageCommand writes the image of all architectures as an OCI layout in a tar archive, and prints its name with its
// digest.
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
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image,
			Descriptor: v1.Descriptor{
				MediaType: types.OCIManifestSchema1,
				Platform:  &v1.Platform{OS: system, Architecture: architecture},
			},
		})
	}
	return plain(index)
}

// settings returns how a container engine starts the program. A test compares this with deploy/Dockerfile.
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
	layer, err := layerOf(program, facts.created)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: facts.created}, CreatedBy: "deploy/release " + facts.version},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform.OS, platform.Architecture
	config.Created = v1.Time{Time: facts.created}
	config.Config = settings(facts)
	return mutate.ConfigFile(image, config)
}

// layerOf returns the only layer: the program, and the certificates of public authorities.
func layerOf(program []byte, modified time.Time) (v1.Layer, error) {
	roots, err := certificates()
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	compressed := compressor(&packed)
	files := tar.NewWriter(compressed)
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
	if err := files.Close(); err != nil {
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

// dockerImage is an entry of manifest.json. Versions of `docker load` without the store of containerd need this file.
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
	err = at.AppendIndex(index, layout.WithAnnotations(map[string]string{
		refName:                    facts.version,
		"io.containerd.image.name": repository + ":" + facts.version,
	}))
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
