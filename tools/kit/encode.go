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
	v := reflect.New(reflect.TypeOf(out)).Elem()
	v.Set(reflect.ValueOf(out))
	settle(v)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // nobody puts it into HTML unescaped, and models read it
	if err := e.Encode(v.Interface()); err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// settle replaces nil lists and maps by empty ones, at every depth.
func settle(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			settle(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !strings.Contains(f.Tag.Get("json"), ",omit") {
				settle(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.IsNil() && v.Type() != reflect.TypeFor[json.RawMessage]() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		if holds(v.Type().Elem()) {
			for i := range v.Len() {
				settle(v.Index(i))
			}
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
	}
}

// holds reports whether a value of the type can have a list or map inside.
func holds(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Map, reflect.Pointer:
		return true
	}
	return false
}
