package main

import (
	"archive/tar"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// archiveCommand packs a folder. The bytes of the archive depend only on the arguments, and on the names, contents and
// executable bits of the files.
func archiveCommand(arguments []string) error {
	flags := flag.NewFlagSet("archive", flag.ExitOnError)
	to := flags.String("to", "", "the archive to write")
	under := flags.String("under", "", "the folder of the archive that contains all files")
	epoch := flags.Int64("epoch", 0, "the time of all files, in seconds")
	_ = flags.Parse(arguments)
	if flags.NArg() != 1 || *to == "" {
		return fmt.Errorf("name a folder and the archive")
	}
	file, err := os.Create(*to)
	if err != nil {
		return err
	}
	defer file.Close()
	packed := compressor(file)
	if err := writeTar(packed, flags.Arg(0), *under, time.Unix(*epoch, 0)); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return file.Close()
}

// compressCommand compresses standard input.
func compressCommand([]string) error {
	packed := compressor(os.Stdout)
	if _, err := io.Copy(packed, os.Stdin); err != nil {
		return err
	}
	return packed.Close()
}

// compressor returns a writer that compresses with gzip. It does not use Go's own library, because the output of that
// library changes with the version of Go. The file go.mod fixes the version of this library.
func compressor(to io.Writer) *gzip.Writer {
	packed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		panic(err) // The level is a constant.
	}
	return packed
}

// writeTar writes the files of a folder, ordered by path, with fixed owners, modes and times.
func writeTar(to io.Writer, folder, under string, modified time.Time) error {
	packed := tar.NewWriter(to)
	err := filepath.WalkDir(folder, func(from string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, from)
		if err != nil {
			return err
		}
		name := path.Join(under, filepath.ToSlash(relative))
		switch {
		case name == ".":
			return nil
		case entry.IsDir():
			return packed.WriteHeader(header(name+"/", 0, 0o755, modified))
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a folder", from)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return writeFile(packed, header(name, len(content), mode, modified), content)
	})
	if err != nil {
		return err
	}
	return packed.Close()
}

func header(name string, size int, mode int64, modified time.Time) *tar.Header {
	kind := byte(tar.TypeReg)
	if strings.HasSuffix(name, "/") {
		kind = tar.TypeDir
	}
	return &tar.Header{
		Typeflag: kind, Name: name, Size: int64(size), Mode: mode, ModTime: modified.UTC(), Format: tar.FormatUSTAR,
	}
}

func writeFile(to *tar.Writer, header *tar.Header, content []byte) error {
	if err := to.WriteHeader(header); err != nil {
		return err
	}
	_, err := to.Write(content)
	return err
}

// mostBytes is the maximum size of a file that the tools read from an archive.
const mostBytes = 512 << 20

// readTar calls `each` for each entry of an archive.
func readTar(from io.Reader, each func(header *tar.Header, content []byte) error) error {
	packed := tar.NewReader(from)
	for {
		header, err := packed.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Size > mostBytes {
			return fmt.Errorf("%s has more than %d MiB", header.Name, mostBytes>>20)
		}
		content, err := io.ReadAll(packed)
		if err != nil {
			return err
		}
		if err := each(header, content); err != nil {
			return err
		}
	}
}

// contents maps the name of each file in an archive to the file's content.
type contents map[string][]byte

// archived is the content of a compressed archive.
type archived struct {
	files contents
	// `links` maps each symbolic link to its target. `programs` says for each file whether it is executable.
	links    map[string]string
	programs map[string]bool
	// The latest modification time of the files.
	modified time.Time
	// The comment of the archive. `git archive` writes the commit into this comment.
	comment string
}

// unpack reads an archive. It refuses names that are unclean or occur twice: two tools could unpack different files
// from such an archive.
func unpack(name string) (*archived, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	read := &archived{files: contents{}, links: map[string]string{}, programs: map[string]bool{}}
	seen := map[string]bool{}
	err = readTar(unpacked, func(header *tar.Header, content []byte) error {
		name := strings.TrimSuffix(header.Name, "/")
		if header.Typeflag == tar.TypeXGlobalHeader {
			read.comment = header.PAXRecords["comment"]
			return nil
		}
		if name != path.Clean(name) || !filepath.IsLocal(name) || seen[name] {
			return fmt.Errorf("the archive has an unclean or a second file %s", header.Name)
		}
		seen[name] = true
		if header.ModTime.After(read.modified) {
			read.modified = header.ModTime
		}
		switch {
		case header.Mode&0o7000 != 0:
			return fmt.Errorf("%s has the mode %o", name, header.Mode)
		case header.Typeflag == tar.TypeReg:
			read.files[name] = content
			read.programs[name] = header.Mode&0o111 != 0
		case header.Typeflag == tar.TypeSymlink:
			read.links[name] = header.Linkname
		case header.Typeflag != tar.TypeDir:
			return fmt.Errorf("%s is neither a file nor a folder", name)
		}
		return nil
	})
	return read, err
}

// writeFiles writes an archive of plain files, ordered by name.
func writeFiles(to string, files contents, modified time.Time) error {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer file.Close()
	compressed := compressor(file)
	packed := tar.NewWriter(compressed)
	for _, name := range sorted(files) {
		if err := writeFile(packed, header(name, len(files[name]), 0o644, modified), files[name]); err != nil {
			return err
		}
	}
	for _, end := range []io.Closer{packed, compressed} {
		if err := end.Close(); err != nil {
			return err
		}
	}
	return file.Close()
}
