package policy

import (
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos/internal/guest"
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos/internal/wire"
)

// These are the functions that the world `policy` exports, with the signatures of the canonical ABI of components. A
// function with a result returns the address of the result.

var (
	passes = map[uint32]*pass{}
	next   uint32
)

//go:wasmexport kaos:policy/meta@0.1.0#describe
func exportDescribe() uint32 {
	defer guest.Guard()
	guest.Memory.Begin()
	if exported == nil {
		panic("the component has no policy: call policy.Export in an init function of main")
	}
	return wire.Write(&guest.Memory, guest.Describe(exported))
}

//go:wasmimport [export]kaos:policy/translation@0.1.0 [resource-new]pass
func resourceNew(number uint32) uint32

//go:wasmexport kaos:policy/translation@0.1.0#[constructor]pass
func exportPass(object, objectSize, found, foundLength, settings, settingsSize, domain, domainSize, namespace,
	namespaceSize, served, servedLength, applied, extra, extraSize uint32) uint32 {
	defer guest.Guard()
	guest.Memory.Begin()
	subject := wire.Flat[kaos.Subject](&guest.Memory, object, objectSize, found, foundLength, settings, settingsSize, domain,
		domainSize, namespace, namespaceSize, served, servedLength, applied, extra, extraSize)
	guest.Memory.Taken()
	next++
	passes[next] = &pass{exported, &subject}
	return resourceNew(next)
}

//go:wasmexport kaos:policy/translation@0.1.0#[dtor]pass
func exportDrop(number uint32) { delete(passes, number) }

//go:wasmexport kaos:policy/translation@0.1.0#[method]pass.needs
func exportNeeds(number, found, length uint32) uint32 {
	defer guest.Guard()
	guest.Memory.Begin()
	answers := wire.List[kaos.Found](&guest.Memory, found, length)
	guest.Memory.Taken()
	return wire.Write(&guest.Memory, passes[number].needs(answers))
}

//go:wasmexport kaos:policy/translation@0.1.0#[method]pass.map-env
func exportMapEnv(number, base, length uint32) uint32 {
	defer guest.Guard()
	guest.Memory.Begin()
	vars := wire.List[kaos.EnvVar](&guest.Memory, base, length)
	guest.Memory.Taken()
	env, refused := passes[number].mapEnv(vars)
	return wire.WriteResult(&guest.Memory, env, refused)
}

//go:wasmexport kaos:policy/translation@0.1.0#[method]pass.translate
func exportTranslate(number, env, length uint32) uint32 {
	defer guest.Guard()
	guest.Memory.Begin()
	vars := wire.List[kaos.EnvVar](&guest.Memory, env, length)
	guest.Memory.Taken()
	plan, refused := passes[number].translate(vars)
	return wire.WriteResult(&guest.Memory, plan, refused)
}

//go:wasmexport kaos:policy/translation@0.1.0#[method]pass.assess
func exportAssess(number, outcome, refusal, content, contentSize, children, childrenLength, gates, gatesLength, env,
	envLength, notes, notesLength, extra, extraSize uint32) uint32 {
	defer guest.Guard()
	guest.Memory.Begin()
	seen := wire.Flat[kaos.Observation](&guest.Memory, outcome, refusal, content, contentSize, children, childrenLength, gates,
		gatesLength, env, envLength, notes, notesLength, extra, extraSize)
	guest.Memory.Taken()
	return wire.Write(&guest.Memory, passes[number].assess(seen))
}
