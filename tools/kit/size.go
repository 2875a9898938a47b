package kit

import "encoding/json"

// MaxResult is how many bytes the answer to a call may have as a whole, as it is sent. Hosts take about 25 000 tokens
// and refuse what is larger as a whole, after the work was done.
const MaxResult = 60_000

// Envelope is what an answer has around the two copies of its value: the frame of the protocol and who answers.
const Envelope = 1_000

// Size is how many bytes a value of JSON takes as MCP sends it: once as it is, and once more as a text that holds it.
// Content decides how much that is: of a quotation mark in a name, \" and \\\" are sent, of a < two times six bytes.
func Size(value json.RawMessage) (alone, asText int) {
	for _, c := range value {
		switch c {
		case '"', '\\':
			alone, asText = alone+1, asText+2
		case '<', '>', '&':
			alone, asText = alone+6, asText+6
		default:
			alone, asText = alone+1, asText+1
		}
	}
	return alone, asText
}

// MaxValues bounds what a message turns into when it is parsed. A byte or two of it can be a value, which takes a hundred
// bytes in memory and is looked at by every parser and check on the way: half a million of them in each of a few
// messages at once would be gigabytes. The largest that tools are meant to take, lists of hundreds of rows, are thousands.
const MaxValues = 20_000

// MaxDepth bounds how deep the values of a message lie in each other. A parser on the way looks through what is left of
// the message at every level, so that a thousand levels cost seconds. Schemas of arguments are some ten levels deep.
const MaxDepth = 64

// Values counts the values in valid JSON, names in objects not among them, and how deep they lie in each other.
func Values(message []byte) (n, depth int) {
	n, open, quoted := 1, 0, false
	for i := 0; i < len(message); i++ {
		switch c := message[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			n++
		case c == '[' || c == '{':
			n, open = n+1, open+1
			depth = max(depth, open)
		case c == ']' || c == '}':
			open--
		}
	}
	return n, depth
}
