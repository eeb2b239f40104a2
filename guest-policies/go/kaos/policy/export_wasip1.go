package policy

import (
	"runtime"

	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos/internal/wire"
)

// The functions of the world `policy`, as the canonical ABI of components wants them. An answer is the address of a
// value.

var (
	passes = map[uint32]*pass{}
	next   uint32
)

// guard ends the sandbox after a panic, and leaves the text of the panic for the host.
func guard() {
	if recovered := recover(); recovered != nil {
		leave(recovered)
		// This is the instruction `unreachable`. An exit would go on.
		runtime.Breakpoint()
	}
}

//go:wasmexport kaos:policy/meta@0.1.0#describe
func exportDescribe() uint32 {
	defer guard()
	memory.begin()
	if exported == nil {
		panic("the component has no policy: call policy.Export in an init function of main")
	}
	return wire.Write(&memory, describe(exported))
}

//go:wasmimport [export]kaos:policy/translation@0.1.0 [resource-new]pass
func resourceNew(number uint32) uint32

//go:wasmexport kaos:policy/translation@0.1.0#[constructor]pass
func exportPass(object, objectSize, found, foundLength, settings, settingsSize, domain, domainSize, namespace,
	namespaceSize, served, servedLength, applied, extra, extraSize uint32) uint32 {
	defer guard()
	memory.begin()
	subject := wire.Flat[kaos.Subject](&memory, object, objectSize, found, foundLength, settings, settingsSize, domain,
		domainSize, namespace, namespaceSize, served, servedLength, applied, extra, extraSize)
	memory.taken()
	next++
	passes[next] = &pass{exported, &subject}
	return resourceNew(next)
}

//go:wasmexport kaos:policy/translation@0.1.0#[dtor]pass
func exportDrop(number uint32) { delete(passes, number) }

//go:wasmexport kaos:policy/translation@0.1.0#[method]pass.needs
func exportNeeds(number, found, length uint32) uint32 {
	defer guard()
	memory.begin()
	answers := wire.List[kaos.Found](&memory, found, length)
	memory.taken()
	return wire.Write(&memory, passes[number].needs(answers))
}

//go:wasmexport kaos:policy/translation@0.1.0#[method]pass.map-env
func exportMapEnv(number, base, length uint32) uint32 {
	defer guard()
	memory.begin()
	vars := wire.List[kaos.EnvVar](&memory, base, length)
	memory.taken()
	env, refused := passes[number].mapEnv(vars)
	return wire.WriteResult(&memory, env, refused)
}

//go:wasmexport kaos:policy/translation@0.1.0#[method]pass.translate
func exportTranslate(number, env, length uint32) uint32 {
	defer guard()
	memory.begin()
	vars := wire.List[kaos.EnvVar](&memory, env, length)
	memory.taken()
	plan, refused := passes[number].translate(vars)
	return wire.WriteResult(&memory, plan, refused)
}

//go:wasmexport kaos:policy/translation@0.1.0#[method]pass.assess
func exportAssess(number, outcome, refusal, content, contentSize, children, childrenLength, gates, gatesLength, env,
	envLength, notes, notesLength, extra, extraSize uint32) uint32 {
	defer guard()
	memory.begin()
	seen := wire.Flat[kaos.Observation](&memory, outcome, refusal, content, contentSize, children, childrenLength, gates,
		gatesLength, env, envLength, notes, notesLength, extra, extraSize)
	memory.taken()
	return wire.Write(&memory, passes[number].assess(seen))
}
