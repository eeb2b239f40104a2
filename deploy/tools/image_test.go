package main

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

var (
	amd64 = v1.Platform{OS: "linux", Architecture: "amd64"}
	facts = imageFacts{version: "1.2.3", commit: strings.Repeat("a", 40), created: time.Unix(1767323045, 0).UTC()}
)

const programText = "the program"

// problemsOf verifies the image `index` as the image of a release, and returns the problems. `named` is the version in
// the image's name in the OCI layout.
func problemsOf(t *testing.T, index v1.ImageIndex, named string) string {
	folder := t.TempDir()
	file := must(os.Create(filepath.Join(folder, imageFile(facts.version))))
	if err := writeLayout(file, index, imageFacts{version: named, created: facts.created}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, programFile("linux-amd64")), []byte(programText), 0o755); err != nil {
		t.Fatal(err)
	}
	r := &released{
		folder: folder, version: facts.version, commit: facts.commit, sums: must(sumsOf(folder)), scratch: t.TempDir(),
		image: must(index.Digest()).String(), inImage: map[string]bool{},
		sources: &sources{files: contents{"deploy/tools/go.mod": ownGoMod}, at: facts.created},
	}
	r.checkImage()
	return strings.Join(r.problems, "\n")
}

// indexWith returns an index with one image, whose layer has these files.
func indexWith(t *testing.T, files []byte, platform v1.Platform) v1.ImageIndex {
	image := must(imageWith(files, configOf(files, platform, facts)))
	return must(plain(withImage(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), image, platform)))
}

// layerWith returns the layer as a tar archive. For each file, `change` may edit the header, and may return other
// content for the file.
func layerWith(t *testing.T, change func(header *tar.Header) []byte) []byte {
	var written bytes.Buffer
	to := tar.NewWriter(&written)
	from := must(layerFiles([]byte(programText), must(certificates()), facts.created))
	err := readTar(bytes.NewReader(from), func(header *tar.Header, content []byte) error {
		if other := change(header); other != nil {
			content = other
			header.Size = int64(len(content))
		}
		if header.Typeflag != tar.TypeReg {
			content, header.Size = nil, 0
		}
		return writeFile(to, header, content)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return written.Bytes()
}

func TestTheImageOfAReleasePasses(t *testing.T) {
	unchanged := layerWith(t, func(*tar.Header) []byte { return nil })
	if is := problemsOf(t, indexWith(t, unchanged, amd64), facts.version); is != "" {
		t.Fatal(is)
	}
}

func TestAnImageWithOtherFilesIsRefused(t *testing.T) {
	roots := must(certificates())
	for what, change := range map[string]func(header *tar.Header) []byte{
		"a program that runs as root": func(header *tar.Header) []byte {
			if header.Name == programPath {
				header.Mode |= 0o4000
			}
			return nil
		},
		"capabilities of a file": func(header *tar.Header) []byte {
			if header.Name == programPath {
				header.Format, header.PAXRecords = tar.FormatPAX, map[string]string{"SCHILY.xattr.security.capability": "all"}
			}
			return nil
		},
		"a link instead of the certificates": func(header *tar.Header) []byte {
			if header.Name == certificatesPath {
				header.Typeflag, header.Linkname = tar.TypeSymlink, "/tmp/roots"
			}
			return nil
		},
		"another owner": func(header *tar.Header) []byte {
			header.Uid = 65532
			return nil
		},
		"a folder that everybody can write": func(header *tar.Header) []byte {
			if header.Typeflag == tar.TypeDir {
				header.Mode = 0o777
			}
			return nil
		},
		"fewer certificates": func(header *tar.Header) []byte {
			if header.Name == certificatesPath {
				return roots[:bytes.LastIndex(roots, []byte("-----BEGIN"))]
			}
			return nil
		},
	} {
		if is := problemsOf(t, indexWith(t, layerWith(t, change), amd64), facts.version); is == "" {
			t.Errorf("%s is accepted", what)
		}
	}
}

func TestAnImageWithAnotherNameOrTimeIsRefused(t *testing.T) {
	files := must(layerFiles([]byte(programText), must(certificates()), facts.created))
	if is := problemsOf(t, indexWith(t, files, amd64), "9.9.9"); !strings.Contains(is, "the layout has the names") {
		t.Errorf("another name: %q", is)
	}
	config := configOf(files, amd64, facts)
	config.History[0].CreatedBy = "docker build"
	image := must(imageWith(files, config))
	index := must(plain(withImage(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), image, amd64)))
	if is := problemsOf(t, index, facts.version); !strings.Contains(is, "the configuration of the image is") {
		t.Errorf("another history: %q", is)
	}
}

func TestAnIndexWithoutAPlatformIsRefused(t *testing.T) {
	files := must(layerFiles([]byte(programText), must(certificates()), facts.created))
	image := must(imageWith(files, configOf(files, amd64, facts)))
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: image})
	folder := t.TempDir()
	must(layout.Write(folder, index))
	outer := &v1.IndexManifest{Manifests: []v1.Descriptor{{Annotations: namesOf(facts.version)}}}
	written := must(layout.ImageIndexFromPath(folder))
	err := (&released{version: facts.version}).checkIndex("image", &unpacked{outer: outer, index: written})
	if err == nil || !strings.Contains(err.Error(), "without a platform") {
		t.Fatalf("not refused: %v", err)
	}
}

func TestAnArchiveWithAFileTwiceIsRefused(t *testing.T) {
	for what, header := range map[string]*tar.Header{
		"a second file":       {Name: "a/b", Mode: 0o644},
		"an unclean name":     {Name: "a//c", Mode: 0o644},
		"a file outside":      {Name: "../c", Mode: 0o644},
		"a program of root":   {Name: "a/c", Mode: 0o4755},
		"a link to a file":    {Name: "a/c", Mode: 0o644, Typeflag: tar.TypeLink, Linkname: "a/b"},
		"a device":            {Name: "a/c", Mode: 0o644, Typeflag: tar.TypeChar},
		"a file that is long": {Name: "a/c", Mode: 0o644, Size: mostBytes + 1},
	} {
		to := filepath.Join(t.TempDir(), "archive.tar.gz")
		file := must(os.Create(to))
		compressed := compressor(file)
		packed := tar.NewWriter(compressed)
		for _, one := range []*tar.Header{{Name: "a/b", Mode: 0o644}, header} {
			if err := packed.WriteHeader(one); err != nil {
				t.Fatal(err)
			}
		}
		_ = packed.Flush()
		if err := compressed.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := unpack(to); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}
