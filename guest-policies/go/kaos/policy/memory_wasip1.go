package policy

import "unsafe"

// sandbox is the memory of the component. The garbage collector does not see the addresses that the host holds, so the
// sandbox keeps what they point to.
type sandbox struct {
	arguments [][]uint64
	results   [][]uint64
	texts     []string
}

var memory sandbox

func pointer(at uint32) *byte { return (*byte)(unsafe.Pointer(uintptr(at))) }

func (*sandbox) Bytes(at, size uint32) []byte { return unsafe.Slice(pointer(at), size) }

// Text does not copy: the text keeps the bytes that the host wrote.
func (*sandbox) Text(at, size uint32) string {
	if size == 0 {
		return ""
	}
	return unsafe.String(pointer(at), size)
}

func room8(size uint32) []uint64 { return make([]uint64, max(size+7, 8)/8) }

func address(bytes []uint64) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))) }

func (s *sandbox) Allocate(size uint32) uint32 {
	bytes := room8(size)
	s.results = append(s.results, bytes)
	return address(bytes)
}

func (s *sandbox) Place(text string) uint32 {
	s.texts = append(s.texts, text)
	return uint32(uintptr(unsafe.Pointer(unsafe.StringData(text))))
}

// begin forgets the results of the previous question: the host has copied them.
func (s *sandbox) begin() { s.results, s.texts = nil, nil }

// taken forgets the arguments of this question: the values that were read keep their bytes.
func (s *sandbox) taken() { s.arguments = nil }

// The host calls realloc to place the arguments of a question. It never changes the size of a text, because both sides
// use UTF-8.
//
//go:wasmexport cabi_realloc
func realloc(old, oldSize, align, size uint32) uint32 {
	bytes := room8(size)
	memory.arguments = append(memory.arguments, bytes)
	if oldSize > 0 {
		copy(memory.Bytes(address(bytes), size), memory.Bytes(old, oldSize))
	}
	return address(bytes)
}
