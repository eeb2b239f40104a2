package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	rustaudit "github.com/microsoft/go-rustaudit"
)

// part is one part of the program: the crates of one lock file. The crates of the part `program` come from the list
// that cargo-auditable put into the program.
type part struct{ name, lock, root string }

const programPart = "program"

var parts = []part{
	{programPart, "Cargo.lock", "kaos-operator"},
	{"policies", "guest-policies/Cargo.lock", ""},
	{"script-engine", "guest-policies/javascript/Cargo.lock", "kaos-javascript"},
}

const partProperty = "kaos:part"

// sbomCommand writes the bill of materials of a program, in the format of CycloneDX.
func sbomCommand(arguments []string) error {
	flags := flag.NewFlagSet("sbom", flag.ExitOnError)
	to := flags.String("to", "", "the file to write")
	version := flags.String("version", "", "the version of the release")
	epoch := flags.Int64("epoch", 0, "the time of the bill, in seconds")
	source := flags.String("source", "", "the folder with the sources")
	told := flags.String("metadata", "", "the folder with the output of `cargo metadata` for each part: PART.json")
	_ = flags.Parse(arguments)
	if flags.NArg() != 1 {
		return fmt.Errorf("name a program")
	}
	program, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	listed, err := cratesIn(program)
	if err != nil {
		return fmt.Errorf("%s: %w", flags.Arg(0), err)
	}
	bill := newBill(program, *version, time.Unix(*epoch, 0))
	var components []cyclonedx.Component
	for _, part := range parts {
		lock, licenses, crates, err := readPart(part, *source, *told)
		if err != nil {
			return err
		}
		scope := func(crate) cyclonedx.Scope { return cyclonedx.ScopeRequired }
		if part.name == programPart {
			crates = ordered(listed.all())
			bill.Dependencies = listed.dependencies()
			scope = listed.scope
		}
		for _, one := range crates {
			checksum, found := lock[one]
			if !found {
				return fmt.Errorf("%s: the crate %s is not in %s", flags.Arg(0), one, part.lock)
			}
			components = append(components, component(part.name, one, checksum, licenses[one], scope(one)))
		}
	}
	bill.Components = &components
	file, err := os.Create(*to)
	if err != nil {
		return err
	}
	defer file.Close()
	encoder := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	if err := encoder.EncodeVersion(bill, cyclonedx.SpecVersion1_6); err != nil {
		return err
	}
	return file.Close()
}

func readPart(part part, source, told string) (lockFile, map[crate]string, []crate, error) {
	text, err := os.ReadFile(filepath.Join(source, part.lock))
	if err != nil {
		return nil, nil, nil, err
	}
	lock, err := readLock(text)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", part.lock, err)
	}
	read, err := readMetadata(filepath.Join(told, part.name+".json"))
	if err != nil {
		return nil, nil, nil, err
	}
	if part.name == programPart {
		return lock, read.licenses(), nil, nil
	}
	crates, err := read.compiled(part.root)
	return lock, read.licenses(), crates, err
}

func newBill(program []byte, version string, at time.Time) *cyclonedx.BOM {
	sum := sha256.Sum256(program)
	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{
		Timestamp: at.UTC().Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: "kaos-operator", Type: cyclonedx.ComponentTypeApplication, Name: "kaos-operator", Version: version,
			Hashes:   &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
			Licenses: license("Apache-2.0"),
		},
	}
	return bill
}

func component(part string, one crate, checksum, licensed string, scope cyclonedx.Scope) cyclonedx.Component {
	described := cyclonedx.Component{
		BOMRef: reference(part, one), Type: cyclonedx.ComponentTypeLibrary, Name: one.name, Version: one.version,
		PackageURL: one.purl(), Scope: scope, Licenses: license(licensed),
		Properties: &[]cyclonedx.Property{{Name: partProperty, Value: part}},
	}
	if checksum != "" {
		described.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: checksum}}
	}
	return described
}

func reference(part string, one crate) string { return part + ":" + one.purl() }

func license(expression string) *cyclonedx.Licenses {
	if expression == "" {
		return nil
	}
	return &cyclonedx.Licenses{{Expression: expression}}
}

// embedded is the list of crates in a program.
type embedded rustaudit.VersionInfo

func cratesIn(program []byte) (embedded, error) {
	list, err := rustaudit.GetDependencyInfo(bytes.NewReader(program))
	if err != nil {
		return embedded{}, fmt.Errorf("the program has no list of its crates, so it was not built with cargo-auditable: %w", err)
	}
	return embedded(list), nil
}

func (e embedded) all() map[crate]bool {
	crates := map[crate]bool{}
	for _, one := range e.Packages {
		crates[crate{one.Name, one.Version}] = true
	}
	return crates
}

// scope returns whether the program contains a crate, or whether the crate only runs during the build.
func (e embedded) scope(asked crate) cyclonedx.Scope {
	for _, one := range e.Packages {
		if asked == (crate{one.Name, one.Version}) && one.Kind == rustaudit.Runtime {
			return cyclonedx.ScopeRequired
		}
	}
	return cyclonedx.ScopeExcluded
}

func (e embedded) dependencies() *[]cyclonedx.Dependency {
	var list []cyclonedx.Dependency
	for _, one := range e.Packages {
		var needs []string
		for _, at := range one.Dependencies {
			if int(at) < len(e.Packages) {
				needs = append(needs, reference(programPart, crate{e.Packages[at].Name, e.Packages[at].Version}))
			}
		}
		list = append(list, cyclonedx.Dependency{Ref: reference(programPart, crate{one.Name, one.Version}), Dependencies: &needs})
	}
	return &list
}
