package guest

import "unsafe"

// Sandbox is the memory of the component. The garbage collector does not see the addresses that only the host has. So
// Sandbox refers to the values at these addresses while the host or the policy needs the values.
type Sandbox struct {
	arguments [][]uint64
	results   [][]uint64
	texts     []string
}

// Memory is the memory of this component.
var Memory Sandbox

func pointer(at uint32) *byte { return (*byte)(unsafe.Pointer(uintptr(at))) }

// Bytes returns the bytes at an address.
func (*Sandbox) Bytes(at, size uint32) []byte { return unsafe.Slice(pointer(at), size) }

// Text returns the text at an address. It does not copy the bytes that the host wrote.
func (*Sandbox) Text(at, size uint32) string {
	if size == 0 {
		return ""
	}
	return unsafe.String(pointer(at), size)
}

func room8(size uint32) []uint64 { return make([]uint64, max(size+7, 8)/8) }

func address(bytes []uint64) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))) }

// Allocate returns the address of new bytes.
func (s *Sandbox) Allocate(size uint32) uint32 {
	bytes := room8(size)
	s.results = append(s.results, bytes)
	return address(bytes)
}

// Place returns the address of the bytes of a text, and keeps the text.
func (s *Sandbox) Place(text string) uint32 {
	s.texts = append(s.texts, text)
	return uint32(uintptr(unsafe.Pointer(unsafe.StringData(text))))
}

// Begin releases the results of the previous call, because the host has copied them.
func (s *Sandbox) Begin() { s.results, s.texts = nil, nil }

// Taken releases the arguments of this call. Texts that the policy has read from the arguments keep their bytes.
func (s *Sandbox) Taken() { s.arguments = nil }

// The host calls realloc to allocate memory for the arguments of a call. The host never changes the size of a text,
// because both the host and the component use UTF-8.
//
//go:wasmexport cabi_realloc
func realloc(old, oldSize, align, size uint32) uint32 {
	bytes := room8(size)
	Memory.arguments = append(Memory.arguments, bytes)
	if oldSize > 0 {
		copy(Memory.Bytes(address(bytes), size), Memory.Bytes(old, oldSize))
	}
	return address(bytes)
}
