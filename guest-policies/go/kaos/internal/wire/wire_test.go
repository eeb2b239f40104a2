package wire

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

// arena is a memory outside of the sandbox.
type arena struct{ bytes []byte }

func (a *arena) Bytes(at, size uint32) []byte { return a.bytes[at : at+size] }
func (a *arena) Text(at, size uint32) string  { return string(a.Bytes(at, size)) }

func (a *arena) Allocate(size uint32) uint32 {
	at := alignUp(uint32(len(a.bytes)), 8)
	// Fill new bytes with a value other than zero, because no result may depend on bytes that Write did not write.
	a.bytes = append(a.bytes, make([]byte, at-uint32(len(a.bytes)))...)
	a.bytes = append(a.bytes, []byte(strings.Repeat("\xff", int(size)))...)
	return at
}

func (a *arena) Place(text string) uint32 {
	at := a.Allocate(uint32(len(text)))
	copy(a.bytes[at:], text)
	return at
}

type shape interface{ isShape() }
type circle uint32
type named string
type empty struct{}
type many []string

func (circle) isShape() {}
func (named) isShape()  {}
func (empty) isShape()  {}
func (many) isShape()   {}

func init() { Variant[shape](circle(0), named(""), empty{}, many{}) }

type record struct {
	Flag   bool
	Number uint32
	Text   string
	Maybe  string `wit:"option"`
	hidden int
	Level  uint8
	Shape  shape
	Pairs  [][2]string
	Shapes []shape
	Last   bool
}

func TestEveryValueSurvivesARoundTrip(t *testing.T) {
	for _, want := range []record{
		{Shape: empty{}, Pairs: [][2]string{}, Shapes: []shape{}},
		{
			Flag: true, Number: 70000, Text: "é", Maybe: "x", Level: 2, Shape: many{"a", ""},
			Pairs: [][2]string{{"a", "b"}, {"", "c"}}, Shapes: []shape{circle(3), named("n"), empty{}, many{}}, Last: true,
		},
	} {
		m := &arena{}
		got := Read[record](m, Write(m, want))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestLayoutsAreThoseOfTheCanonicalABI(t *testing.T) {
	for _, c := range []struct {
		of          any
		size, align uint32
	}{
		{struct{ A, B bool }{}, 2, 1},
		{struct {
			A bool
			B uint32
			C bool
		}{}, 12, 4},
		{[2]string{}, 16, 4},
		{record{}, 4 + 4 + 8 + 12 + 4 + 12 + 8 + 8 + 4, 4},
		{empty{}, 0, 1},
	} {
		if got := layoutOf(reflect.TypeOf(c.of)); got != (layout{c.size, c.align}) {
			t.Errorf("%T: got %+v", c.of, got)
		}
	}
}

func TestParametersAreTheWordsOfAValue(t *testing.T) {
	type flat struct {
		Text  string
		Shape shape
		Flag  bool
		Last  string
	}
	m := &arena{}
	want := flat{"text", named("n"), true, "end"}
	at := Write(m, want)
	var words []uint32
	for i := range layoutOf(reflect.TypeFor[flat]()).size / 4 {
		words = append(words, word(m, at+i*4))
	}
	words[2] &= 0xff
	words[5] &= 0xff
	if got := Flat[flat](m, words...); got != want {
		t.Errorf("got %+v", got)
	}
}

func TestAResultHasTheValueOrTheError(t *testing.T) {
	m := &arena{}
	at := WriteResult(m, []string{"a"}, shape(nil))
	if m.bytes[at] != 0 || List[string](m, word(m, at+4), word(m, at+8))[0] != "a" {
		t.Error("the value is missing")
	}
	at = WriteResult(m, []string{}, shape(named("no")))
	if m.bytes[at] != 1 || Read[shape](m, at+4) != shape(named("no")) {
		t.Error("the error is missing")
	}
}

func TestAnEmptyJSONTextIsAnEmptyObject(t *testing.T) {
	type JSON string
	m := &arena{}
	if got := Read[JSON](m, Write(m, JSON(""))); got != "{}" {
		t.Errorf("got %q", got)
	}
}

func TestAMissingOrForeignCaseIsNamed(t *testing.T) {
	defer func() {
		if told, _ := recover().(string); !strings.Contains(told, "wire.shape is missing") {
			t.Errorf("got %q", told)
		}
	}()
	Write(&arena{}, record{})
}

func TestANumberWithoutACaseIsRefused(t *testing.T) {
	m := &arena{bytes: binary.LittleEndian.AppendUint64(nil, 9)}
	defer func() {
		if recover() == nil {
			t.Error("case 9 was read")
		}
	}()
	Read[shape](m, 0)
}
