package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
)

// launch has the image, the command and the variables with which the container starts.
type launch struct {
	// image is empty if only the user's container.image can name an image.
	image        string
	command      *[]string
	args         *[]string
	paramsEnvVar string
	requiredEnv  []string
	// paramsArePython is true if the parameters are Python source. Each function at the top level of the source is a tool.
	paramsArePython bool
	tools           []string
	notes           []kaos.Note
}

func launchOf(source source, settings *Settings, subject *kaos.Subject, own *Container) (*launch, error) {
	ownImage := own != nil && own.Image != ""
	switch {
	case source.packageName != "":
		return packageLaunch(source, settings)
	case source.runtime == "" && ownImage:
		return &launch{}, nil
	case source.runtime == "":
		const message = "custom runtime requires container.image to be set"
		return nil, kaos.Invalid{{Path: "spec.container.image", Message: message}}
	}
	unusable := func(err error) error {
		on := registryReference(settings, subject)
		return kaos.Waiting{{On: on, Reason: "RegistryUnusable", Message: err.Error()}}
	}
	registry, err := registryOf(settings, subject)
	if err != nil {
		return nil, unusable(err)
	}
	runtime, err := registry.entry(source.runtime)
	switch {
	case err != nil:
		return nil, unusable(malformed(settings, err))
	case runtime == nil:
		return nil, unknown(source.runtime, registry, settings)
	}
	return registered(source.runtime, runtime, settings, own)
}

func unknown(name string, registry registry, settings *Settings) error {
	name = kaos.Shown(name, 63)
	remedy := fmt.Sprintf("the registry is empty; add %s to %s of ConfigMap %s, or use", name, settings.Registry.Key,
		settings.Registry.ConfigMap)
	if names := registry.names(); len(names) > 0 {
		remedy = fmt.Sprintf("use a runtime of the registry (%s), or", kaos.Shown(strings.Join(names, ", "), 1000))
	}
	message := fmt.Sprintf("unknown runtime: %s (not found in registry): %s custom with container.image", name, remedy)
	return kaos.Invalid{{Path: "spec.runtime", Message: message}}
}

func registered(name string, runtime *runtime, settings *Settings, own *Container) (*launch, error) {
	if runtime.Image == "" && (own == nil || own.Image == "") {
		message := fmt.Sprintf("the registry of runtimes has no image for runtime %s: set container.image",
			kaos.Shown(name, 63))
		return nil, kaos.Invalid{{Path: "spec.container.image", Message: message}}
	}
	launch := &launch{
		image: runtime.Image, command: runtime.Command, args: runtime.Args, paramsEnvVar: runtime.ParamsEnvVar,
		requiredEnv: runtime.RequiredEnv, paramsArePython: name == pythonString, tools: runtime.Tools,
	}
	// A command replaces the image's entrypoint, so it must not begin with a flag. A user's command replaces the flags.
	hasFlags := launch.command != nil && len(*launch.command) > 0 && strings.HasPrefix((*launch.command)[0], "-")
	if hasFlags && !(own != nil && own.Command != nil && len(*own.Command) > 0) {
		if settings.CommandFlagsAsArgs {
			args := append([]string{}, *launch.command...)
			if launch.args != nil {
				args = append(args, *launch.args...)
			}
			launch.command, launch.args = nil, &args
		} else {
			launch.notes = append(launch.notes, warning("spec.runtime", "CommandIsFlags", fmt.Sprintf("the registry's "+
				"command of runtime %s begins with a flag and replaces the entrypoint of the image: move the command to "+
				"args in the registry, or set the policy setting commandFlagsAsArgs", name)))
		}
	}
	return launch, nil
}

// packageLaunch installs a package and runs its command. If the command fails, it runs the package's Python module.
func packageLaunch(source source, settings *Settings) (*launch, error) {
	name := source.packageName
	program := name
	if end := strings.IndexAny(name, "[=<>!~;@ \t"); end >= 0 {
		program = name[:end]
	}
	isOther := func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-')
	}
	if program == "" || program[0] == '-' || strings.ContainsFunc(program, isOther) || strings.ContainsFunc(name, unicode.IsControl) {
		message := fmt.Sprintf("`%s` is not a Python package: name a package of PyPI, or use runtime custom with "+
			"container.image", kaos.Shown(name, 253))
		return nil, kaos.Invalid{{Path: source.path, Message: message}}
	}
	module := strings.ReplaceAll(program, "-", "_")
	script := fmt.Sprintf("pip install %s && ( %s || python -m %s )", kaos.ShellWord(name), kaos.ShellWord(program),
		kaos.ShellWord(module))
	return &launch{image: settings.PackageImage, command: &[]string{"sh", "-c", kaos.Unexpanded(script)}}, nil
}
