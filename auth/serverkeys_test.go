package auth

import (
	"strings"
	"sync"
	"testing"

	"switchboard/internal/store/storetest"
	"switchboard/internal/trial"
)

func TestAKeyFileBelongsToTheDatabaseItWasFirstUsedWith(t *testing.T) {
	for name, c := range map[string]struct {
		before, then [][]string // key files that were used; then the ones that are tried
		refused      string
	}{
		"the same file again":                     {[][]string{{"k1"}}, [][]string{{"k1"}}, ""},
		"a new key below, then on top":            {[][]string{{"k1"}, {"k1", "k2"}}, [][]string{{"k2", "k1"}, {"k2"}}, ""},
		"a new key on top at once":                {[][]string{{"k1"}}, [][]string{{"k2", "k1"}}, ""},
		"a replica with the old order":            {[][]string{{"k1"}, {"k2", "k1"}}, [][]string{{"k1", "k2"}, {"k1"}}, ""},
		"a foreign file":                          {[][]string{{"k1"}}, [][]string{{"k9"}}, "does not belong to this database"},
		"a foreign file with two keys":            {[][]string{{"k1"}}, [][]string{{"k8", "k9"}}, "does not belong to this database"},
		"another key under a known name":          {[][]string{{"k1"}}, [][]string{{"k1 of another server"}}, "is not the key of that name"},
		"a known key and one under a stolen name": {[][]string{{"k1"}, {"k1", "k2"}}, [][]string{{"k1", "k2 of another server"}}, "is not the key of that name"},
	} {
		s := storetest.Open(t)
		for _, ids := range c.before {
			if err := ClaimKeys(t.Context(), s, trial.Ring(t, ids...)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, ids := range c.then {
			err := ClaimKeys(t.Context(), s, trial.Ring(t, ids...))
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := ClaimKeys(t.Context(), s, trial.Ring(t, "k1")); err != nil {
			t.Errorf("%s, then the first file again: %v", name, err)
		}
	}
}

func TestReplicasThatStartAtOnceClaimTheSameKeys(t *testing.T) {
	s, ring := storetest.Open(t), trial.Ring(t, "k1", "k2")
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range 6 {
		wg.Go(func() {
			<-start
			if err := ClaimKeys(t.Context(), s, ring); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
}
