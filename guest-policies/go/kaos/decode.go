package kaos

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// decode fills `into` from a JSON value, with the tags of encoding/json. Unlike encoding/json, it distinguishes upper
// and lower case, and its refusal has the exact path of the wrong value. Like an API server, it treats null as absent.
func decode(value, into any, path Path) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic(fmt.Sprintf("cannot decode into %T: pass the address of a variable", into))
	}
	if message, at := fill(value, target.Elem(), path); message != "" {
		return Invalid{{Path: string(at), Message: message}}
	}
	return nil
}

// fill returns the message about the first wrong value, and its path. Without a mistake, the message is empty.
func fill(value any, to reflect.Value, path Path) (message string, at Path) {
	if value == nil {
		return "", ""
	}
	if own, ok := to.Addr().Interface().(json.Unmarshaler); ok {
		if err := own.UnmarshalJSON([]byte(Text(value))); err != nil {
			return "cannot be read: " + err.Error(), path
		}
		return "", ""
	}
	switch to.Kind() {
	case reflect.Pointer:
		if to.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
		}
		return fill(value, to.Elem(), path)
	case reflect.Interface:
		if to.NumMethod() == 0 {
			to.Set(reflect.ValueOf(value))
			return "", ""
		}
	case reflect.Bool:
		own, ok := value.(bool)
		if !ok {
			return mismatch("a boolean", value), path
		}
		to.SetBool(own)
		return "", ""
	case reflect.String:
		own, ok := value.(string)
		if !ok {
			return mismatch("a string", value), path
		}
		to.SetString(own)
		return "", ""
	case reflect.Struct, reflect.Map:
		members, ok := value.(Map)
		if !ok {
			return mismatch("an object", value), path
		}
		if to.Kind() == reflect.Map {
			return fillMap(members, to, path)
		}
		return fillFields(members, to, path)
	case reflect.Slice:
		items, ok := value.([]any)
		if !ok {
			return mismatch("a list", value), path
		}
		list := reflect.MakeSlice(to.Type(), len(items), len(items))
		for i, item := range items {
			// In a list of texts, null does not count as absent: it is a mistake.
			if item == nil && list.Index(i).Kind() == reflect.String {
				return mismatch("a string", nil), path.Index(i)
			}
			if message, at := fill(item, list.Index(i), path.Index(i)); message != "" {
				return message, at
			}
		}
		to.Set(list)
		return "", ""
	}
	return fillNumber(value, to), path
}

func fillFields(members Map, to reflect.Value, path Path) (message string, at Path) {
	for i := range to.NumField() {
		field := to.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported() || name == "-":
			continue
		case name == "" && field.Anonymous:
			message, at = fill(members, to.Field(i), path)
		case name == "":
			message, at = fill(members[field.Name], to.Field(i), path.Key(field.Name))
		default:
			message, at = fill(members[name], to.Field(i), path.Key(name))
		}
		if message != "" {
			return message, at
		}
	}
	return "", ""
}

func fillMap(members Map, to reflect.Value, path Path) (message string, at Path) {
	if to.Type().Key().Kind() != reflect.String {
		panic(fmt.Sprintf("cannot decode into %v: the members of an object have texts as names", to.Type()))
	}
	filled := reflect.MakeMapWithSize(to.Type(), len(members))
	for _, name := range sortedNames(members) {
		member := reflect.New(to.Type().Elem()).Elem()
		if message, at := fill(members[name], member, path.Key(name)); message != "" {
			return message, at
		}
		filled.SetMapIndex(reflect.ValueOf(name).Convert(to.Type().Key()), member)
	}
	to.Set(filled)
	return "", ""
}

func fillNumber(value any, to reflect.Value) string {
	number, isNumber := value.(json.Number)
	switch to.Kind() {
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		whole, err := number.Int64()
		if !isNumber || err != nil || to.OverflowInt(whole) {
			return mismatch(wholeNumber(-1<<(to.Type().Bits()-1), 1<<(to.Type().Bits()-1)-1, to.Type().Bits()), value)
		}
		to.SetInt(whole)
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		whole, err := strconv.ParseUint(number.String(), 10, 64)
		if !isNumber || err != nil || to.OverflowUint(whole) {
			return mismatch(wholeNumber(0, 1<<(to.Type().Bits()%64)-1, to.Type().Bits()), value)
		}
		to.SetUint(whole)
	case reflect.Float64, reflect.Float32:
		float, err := number.Float64()
		if !isNumber || err != nil {
			return mismatch("a number", value)
		}
		to.SetFloat(float)
	default:
		panic(fmt.Sprintf("cannot decode into %v: no JSON has this type", to.Type()))
	}
	return ""
}

func wholeNumber(least, most int64, bits int) string {
	if bits == 64 {
		return "a whole number"
	}
	return fmt.Sprintf("a whole number from %d to %d", least, most)
}

// mismatch returns the message about a value of a wrong type. The library in Rust writes the same message.
func mismatch(wanted string, found any) string {
	switch found := found.(type) {
	case nil:
		return fmt.Sprintf("must be %s, not null", wanted)
	case bool:
		return fmt.Sprintf("must be %s, not boolean `%v`", wanted, found)
	case string:
		return fmt.Sprintf("must be %s, not string \"%s\"", wanted, Shown(found, 200))
	case json.Number:
		if _, err := found.Int64(); err == nil || !strings.ContainsAny(found.String(), ".eE") {
			return fmt.Sprintf("must be %s, not integer `%s`", wanted, found)
		}
		return fmt.Sprintf("must be %s, not floating point `%s`", wanted, found)
	case []any:
		return fmt.Sprintf("must be %s, not a list", wanted)
	}
	return fmt.Sprintf("must be %s, not an object", wanted)
}
