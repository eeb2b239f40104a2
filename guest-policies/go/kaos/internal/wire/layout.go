// Package wire reads and writes values in the memory layout of the canonical ABI of components.
//
// Each Go type represents a type of the contract:
//
//	bool, uint8, uint32   bool, enum, u32
//	string, slice         string, list
//	struct, array         record, tuple
//	interface             variant: Variant declares the interface and its cases
//
// A string field with the tag `wit:"option"` is an option, and the empty string means none.
package wire

import (
	"fmt"
	"reflect"
)

type layout struct{ size, align uint32 }

var (
	layouts  = map[reflect.Type]layout{}
	variants = map[reflect.Type][]reflect.Type{}
)

// Variant registers the cases of the variant V, in the order of the contract.
func Variant[V any](cases ...V) {
	types := make([]reflect.Type, len(cases))
	for i, c := range cases {
		types[i] = reflect.TypeOf(c)
	}
	variants[reflect.TypeFor[V]()] = types
}

func alignUp(at, align uint32) uint32 { return (at + align - 1) / align * align }

func layoutOf(t reflect.Type) layout {
	known, ok := layouts[t]
	if !ok {
		known = computed(t)
		layouts[t] = known
	}
	return known
}

func computed(t reflect.Type) layout {
	switch t.Kind() {
	case reflect.Bool, reflect.Uint8:
		return layout{1, 1}
	case reflect.Uint32:
		return layout{4, 4}
	case reflect.String, reflect.Slice:
		return layout{8, 4}
	case reflect.Array:
		of := layoutOf(t.Elem())
		return layout{alignUp(of.size, of.align) * uint32(t.Len()), of.align}
	case reflect.Struct:
		all := layout{0, 1}
		for _, f := range fieldsOf(t) {
			all = layout{max(all.size, f.at+f.layout.size), max(all.align, f.layout.align)}
		}
		return layout{alignUp(all.size, all.align), all.align}
	case reflect.Interface:
		return tagged(casesOf(t)...)
	}
	panic(fmt.Sprintf("wire: the contract has no type like %v", t))
}

// tagged returns the layout of a variant with these cases.
func tagged(cases ...reflect.Type) layout {
	all := layout{0, 1}
	for _, c := range cases {
		of := layoutOf(c)
		all = layout{max(all.size, of.size), max(all.align, of.align)}
	}
	return layout{alignUp(payload(all.align)+all.size, all.align), all.align}
}

// payload returns the offset of a case's content, which follows the number of the case.
func payload(align uint32) uint32 { return alignUp(1, align) }

func casesOf(t reflect.Type) []reflect.Type {
	cases, ok := variants[t]
	if !ok {
		panic(fmt.Sprintf("wire: %v is not declared with Variant", t))
	}
	return cases
}

type field struct {
	index    int
	at       uint32
	layout   layout
	isOption bool
}

var fields = map[reflect.Type][]field{}

func fieldsOf(t reflect.Type) []field {
	known, ok := fields[t]
	if ok {
		return known
	}
	at := uint32(0)
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		own := field{index: i, layout: layoutOf(f.Type), isOption: f.Tag.Get("wit") == "option"}
		if own.isOption {
			own.layout = tagged(reflect.TypeFor[struct{}](), f.Type)
		}
		own.at = alignUp(at, own.layout.align)
		at = own.at + own.layout.size
		known = append(known, own)
	}
	fields[t] = known
	return known
}
