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
