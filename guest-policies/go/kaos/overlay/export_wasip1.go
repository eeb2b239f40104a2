package overlay

import (
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos"
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos/internal/guest"
	"github.com/kaos-tools/policy-operator/guest-policies/go/kaos/internal/wire"
)

// These are the functions that the world `overlay` exports, with the signatures of the canonical ABI of components. A
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
		panic("the component has no overlay: call overlay.Export in an init function of main")
	}
	return wire.Write(&guest.Memory, guest.Describe(exported))
}

//go:wasmimport [export]kaos:policy/amendment@0.1.0 [resource-new]pass
func resourceNew(number uint32) uint32

//go:wasmexport kaos:policy/amendment@0.1.0#[constructor]pass
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

//go:wasmexport kaos:policy/amendment@0.1.0#[dtor]pass
func exportDrop(number uint32) { delete(passes, number) }

//go:wasmexport kaos:policy/amendment@0.1.0#[method]pass.needs
func exportNeeds(number, found, length uint32) uint32 {
	defer guest.Guard()
	guest.Memory.Begin()
	answers := wire.List[kaos.Found](&guest.Memory, found, length)
	guest.Memory.Taken()
	return wire.Write(&guest.Memory, passes[number].needs(answers))
}

//go:wasmexport kaos:policy/amendment@0.1.0#[method]pass.map-env
func exportMapEnv(number, base, length uint32) uint32 {
	defer guest.Guard()
	guest.Memory.Begin()
	vars := wire.List[kaos.EnvVar](&guest.Memory, base, length)
	guest.Memory.Taken()
	env, refused := passes[number].mapEnv(vars)
	return wire.WriteResult(&guest.Memory, env, refused)
}

// The ABI passes the parameters in memory, because a plan has more fields than a function can have parameters.
//
//go:wasmexport kaos:policy/amendment@0.1.0#[method]pass.amend
func exportAmend(at uint32) uint32 {
	defer guest.Guard()
	guest.Memory.Begin()
	parameters := wire.Read[struct {
		Pass  uint32
		Below kaos.Plan
	}](&guest.Memory, at)
	guest.Memory.Taken()
	plan, refused := passes[parameters.Pass].amend(parameters.Below)
	return wire.WriteResult(&guest.Memory, plan, refused)
}
