package wire

import (
	"encoding/binary"
	"fmt"
	"reflect"
)

// Memory holds the values. Addresses have 32 bits, as in the sandbox.
type Memory interface {
	// Bytes returns the bytes at an address.
	Bytes(at, size uint32) []byte
	// Text returns the text at an address.
	Text(at, size uint32) string
	// Allocate returns the address of new bytes. The address is a multiple of eight.
	Allocate(size uint32) uint32
	// Place returns the address of the bytes of a text.
	Place(text string) uint32
}

// Write writes a value into the memory and returns its address.
func Write(m Memory, value any) uint32 {
	v := reflect.ValueOf(value)
	at := m.Allocate(layoutOf(v.Type()).size)
	write(m, at, v)
	return at
}

// WriteResult writes a result: the error `refused`, or `value` if the error is nil. E is the variant of the error.
func WriteResult[T, E any](m Memory, value T, refused E) uint32 {
	ok, no := reflect.TypeFor[T](), reflect.TypeFor[E]()
	all := tagged(ok, no)
	at := m.Allocate(all.size)
	if any(refused) == nil {
		m.Bytes(at, 1)[0] = 0
		write(m, at+payload(all.align), reflect.ValueOf(value))
	} else {
		m.Bytes(at, 1)[0] = 1
		write(m, at+payload(all.align), reflect.ValueOf(&refused).Elem())
	}
	return at
}

// Read reads the value at an address.
func Read[T any](m Memory, at uint32) T {
	var value T
	read(m, at, reflect.ValueOf(&value).Elem())
	return value
}

// List reads a list, whose address and length are parameters of an exported function.
func List[T any](m Memory, at, length uint32) []T {
	var list []T
	readList(m, at, length, reflect.ValueOf(&list).Elem())
	return list
}

// Flat reads a value that an exported function gets as parameters. Each parameter must be one word (four bytes) of the
// value. So each part of the value must consist of words, or be a boolean or the number of a case.
func Flat[T any](m Memory, words ...uint32) T {
	at := m.Allocate(uint32(len(words)) * 4)
	for i, word := range words {
		binary.LittleEndian.PutUint32(m.Bytes(at+uint32(i)*4, 4), word)
	}
	return Read[T](m, at)
}

func word(m Memory, at uint32) uint32 { return binary.LittleEndian.Uint32(m.Bytes(at, 4)) }

func putWords(m Memory, at, first, second uint32) {
	bytes := m.Bytes(at, 8)
	binary.LittleEndian.PutUint32(bytes, first)
	binary.LittleEndian.PutUint32(bytes[4:], second)
}

func read(m Memory, at uint32, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(m.Bytes(at, 1)[0] != 0)
	case reflect.Uint8:
		v.SetUint(uint64(m.Bytes(at, 1)[0]))
	case reflect.Uint32:
		v.SetUint(uint64(word(m, at)))
	case reflect.String:
		v.SetString(m.Text(word(m, at), word(m, at+4)))
	case reflect.Slice:
		readList(m, word(m, at), word(m, at+4), v)
	case reflect.Array:
		size := layoutOf(v.Type().Elem()).size
		for i := range v.Len() {
			read(m, at+uint32(i)*size, v.Index(i))
		}
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			readField(m, at+f.at, f, v.Field(f.index))
		}
	case reflect.Interface:
		cases := casesOf(v.Type())
		number := int(m.Bytes(at, 1)[0])
		if number >= len(cases) {
			panic(fmt.Sprintf("wire: %v has no case %d", v.Type(), number))
		}
		content := reflect.New(cases[number]).Elem()
		read(m, at+payload(layoutOf(v.Type()).align), content)
		v.Set(content)
	}
}

func readField(m Memory, at uint32, f field, v reflect.Value) {
	if !f.isOption {
		read(m, at, v)
	} else if m.Bytes(at, 1)[0] != 0 {
		read(m, at+payload(f.layout.align), v)
	}
}

func readList(m Memory, at, length uint32, v reflect.Value) {
	size := layoutOf(v.Type().Elem()).size
	v.Set(reflect.MakeSlice(v.Type(), int(length), int(length)))
	for i := range int(length) {
		read(m, at+uint32(i)*size, v.Index(i))
	}
}

func write(m Memory, at uint32, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		m.Bytes(at, 1)[0] = 0
		if v.Bool() {
			m.Bytes(at, 1)[0] = 1
		}
	case reflect.Uint8:
		m.Bytes(at, 1)[0] = byte(v.Uint())
	case reflect.Uint32:
		binary.LittleEndian.PutUint32(m.Bytes(at, 4), uint32(v.Uint()))
	case reflect.String:
		text := v.String()
		if text == "" && v.Type().Name() == "JSON" {
			text = "{}"
		}
		putWords(m, at, m.Place(text), uint32(len(text)))
	case reflect.Slice:
		size := layoutOf(v.Type().Elem()).size
		items := m.Allocate(size * uint32(v.Len()))
		for i := range v.Len() {
			write(m, items+uint32(i)*size, v.Index(i))
		}
		putWords(m, at, items, uint32(v.Len()))
	case reflect.Array:
		size := layoutOf(v.Type().Elem()).size
		for i := range v.Len() {
			write(m, at+uint32(i)*size, v.Index(i))
		}
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			writeField(m, at+f.at, f, v.Field(f.index))
		}
	case reflect.Interface:
		writeCase(m, at, v)
	}
}

func writeField(m Memory, at uint32, f field, v reflect.Value) {
	if !f.isOption {
		write(m, at, v)
		return
	}
	m.Bytes(at, 1)[0] = 0
	if !v.IsZero() {
		m.Bytes(at, 1)[0] = 1
		write(m, at+payload(f.layout.align), v)
	}
}

func writeCase(m Memory, at uint32, v reflect.Value) {
	if v.IsNil() {
		panic(fmt.Sprintf("a value of type %v is missing: set it to one of its cases", v.Type()))
	}
	for number, of := range casesOf(v.Type()) {
		if of == v.Elem().Type() {
			m.Bytes(at, 1)[0] = byte(number)
			write(m, at+payload(layoutOf(v.Type()).align), v.Elem())
			return
		}
	}
	panic(fmt.Sprintf("%v is no case of %v", v.Elem().Type(), v.Type()))
}
