package kit

import "github.com/google/jsonschema-go/jsonschema"

// Phone is a phone number in E.164 form.
type Phone string

// JSONSchema implements Described.
func (Phone) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `^\+[1-9]\d{6,14}$`}
}

// Says implements Speaking.
func (Phone) Says() string { return "a phone number in E.164 form such as +14155550123" }

// Email is an e-mail address. The pattern is what clients get, the format is checked on top of it.
type Email string

// JSONSchema implements Described.
func (Email) JSONSchema() *jsonschema.Schema {
	longest := 320
	return &jsonschema.Schema{Type: "string", MaxLength: &longest, Format: "email",
		Pattern: `^(?:[A-Za-z0-9_'+\-]+\.)*[A-Za-z0-9_'+\-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`}
}

// Says implements Speaking.
func (Email) Says() string { return "an e-mail address such as sara@example.com" }
