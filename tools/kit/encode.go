package kit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// encode writes a result once. A list or map that was never made is [] or {}: clients iterate what they get, and
// null breaks them. The result of a handler is the Runner's to fill in.
func encode(out any) (json.RawMessage, error) {
	settle(reflect.ValueOf(&out).Elem(), 0)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // nobody puts it into HTML unescaped, and models read it
	if err := e.Encode(out); err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// tooDeep is where encoding/json, too, begins to look for a value that contains itself. It answers with an error.
const tooDeep = 1000

// settle replaces nil lists and maps by empty ones, at every depth: behind pointers, in lists, maps and interfaces. What
// writes its own JSON is left alone.
func settle(v reflect.Value, depth int) {
	if depth++; depth > tooDeep || !holds(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			settle(v.Elem(), depth)
		}
	case reflect.Interface:
		if !v.IsNil() && holds(v.Elem().Type()) {
			v.Set(settled(v.Elem(), depth))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); holds(f.Type()) && written(v.Type().Field(i), f) {
				settle(f, depth)
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := 0; i < v.Len() && holds(v.Type().Elem()); i++ {
			settle(v.Index(i), depth)
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		if holds(v.Type().Elem()) {
			for _, key := range v.MapKeys() {
				v.SetMapIndex(key, settled(v.MapIndex(key), depth))
			}
		}
	}
}

// settled is a settled copy of what cannot be changed in its place.
func settled(v reflect.Value, depth int) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	settle(c, depth)
	return c
}

// written reports whether encoding/json writes a field as it is. One that is zero under omitzero must stay zero.
func written(f reflect.StructField, v reflect.Value) bool {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() {
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		return f.Anonymous && t.Kind() == reflect.Struct // it lends its exported fields
	}
	if name == "-" && options == "" {
		return false
	}
	if strings.Contains(options, "omitzero") {
		z, ok := v.Addr().Interface().(interface{ IsZero() bool })
		return !v.IsZero() && !(ok && z.IsZero())
	}
	return true
}

// holds reports whether a value of the type can have a list or map inside that encoding/json would find.
func holds(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Array, reflect.Map, reflect.Pointer, reflect.Interface:
		return !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
	}
	return false
}
