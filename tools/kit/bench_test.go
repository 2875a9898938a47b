package kit

import (
	"encoding/json"
	"testing"
)

// BenchmarkArguments is what checking and decoding the arguments of one call costs.
func BenchmarkArguments(b *testing.B) {
	in, err := newInput[order](false)
	if err != nil {
		b.Fatal(err)
	}
	args := []byte(`{"phone":"+14155550123","note":"hello","tags":["a","b"],"facts":{"a":"b"},"window":{"days":[1,2]},"limit":10}`)
	b.ReportAllocs()
	for b.Loop() {
		a, err := in.read(args)
		if err != nil {
			b.Fatal(err)
		}
		var o order
		if err := json.Unmarshal(a.canonical, &o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResult is what encoding a page of results costs, with looking for lists and maps that were never made.
func BenchmarkResult(b *testing.B) {
	rows := make([]order, 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encode(rows); err != nil {
			b.Fatal(err)
		}
	}
}
