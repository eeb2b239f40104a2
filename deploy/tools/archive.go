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

// archiveCommand packs a folder. The bytes depend only on the names and contents of the files, on which of them are
// executable, and on the arguments.
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

// compressor compresses with the code that go.sum fixes. The code of Go's own library changes with the version of Go.
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

// The largest file that the tools read from an archive.
const mostBytes = 512 << 20

// readTar calls the function for each file of an archive.
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
		content, err := io.ReadAll(io.LimitReader(packed, mostBytes))
		if err != nil {
			return err
		}
		if err := each(header, content); err != nil {
			return err
		}
	}
}

// filesOf returns the regular files of a compressed archive by their names, and the comment of the archive, in which
// `git archive` notes the commit.
func filesOf(name string) (map[string][]byte, string, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, "", err
	}
	files, comment := map[string][]byte{}, ""
	err = readTar(unpacked, func(header *tar.Header, content []byte) error {
		switch header.Typeflag {
		case tar.TypeXGlobalHeader:
			comment = header.PAXRecords["comment"]
		case tar.TypeReg:
			files[path.Clean(header.Name)] = content
		}
		return nil
	})
	return files, comment, err
}
