package text

import "testing"

// Whatever a browser says that it reads, it gets a language that the product speaks.
func FuzzLanguageHeaders(f *testing.F) {
	for _, seed := range []string{"", "ar", "en-GB,en;q=0.9,ar;q=0.8", "*", "x-canary", "ar;q=9", "ar;q=-1", "\x00", "a,,,,;;q==", "und", "zh-Hant-TW", "ar-u-nu-latn", "i-klingon"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if got := Match(header); !Speaks(got) || Match(header) != got {
			t.Errorf("%q is %q", header, got)
		}
	})
}
