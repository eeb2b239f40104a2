package guest

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// words has the record that the host looks for after a panic (wit/policy.wit), at an address that is a multiple of 16.
var words [16 + 4 + room + 15]byte

// room is the maximum size of the text in bytes. A longer text is cut off.
const room = 1000

// Guard ends the sandbox after a panic, and leaves the text of the panic for the host. Defer it in each exported function.
func Guard() {
	if recovered := recover(); recovered != nil {
		leave(recovered)
		// Breakpoint is the instruction `unreachable`. After os.Exit, the host would report only an exit.
		runtime.Breakpoint()
	}
}

// leave writes the text of a panic and its place in the source into the record.
func leave(recovered any) {
	text := fmt.Sprintf("panicked at %s: %v", place(), recovered)
	text = text[:min(len(text), room)]
	at := -uintptr(unsafe.Pointer(&words)) & 15
	// The code assembles the mark from parts. Otherwise, the host could find the mark's constant instead of the record.
	copy(words[at:], "kaos:last-")
	copy(words[at+10:], "words:")
	binary.LittleEndian.PutUint32(words[at+16:], uint32(len(text)))
	copy(words[at+20:], text)
}

// place returns the file and the line of the panic. It works only in the deferred function that recovered the panic.
func place() string {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	panicked := false
	for {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicked && !inRuntime {
			return fmt.Sprintf("%s:%d", frame.File, frame.Line)
		}
		panicked = panicked || frame.Function == "runtime.gopanic"
		if !more {
			return "an unknown place"
		}
	}
}
