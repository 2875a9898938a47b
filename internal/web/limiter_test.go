package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestAKeyMayUseItsMinuteAtOnceAndGetsItBackEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(60)
		for i := range 60 {
			if _, ok := l.Allow("a"); !ok {
				t.Fatalf("refused at %d", i)
			}
		}
		wait, ok := l.Allow("a")
		if ok || wait != time.Second {
			t.Errorf("the 61st: %t, wait %s", ok, wait)
		}
		if _, ok := l.Allow("b"); !ok {
			t.Error("another key was refused")
		}
		time.Sleep(wait)
		if _, ok := l.Allow("a"); !ok {
			t.Error("refused after the wait that was asked for")
		}
		if _, ok := l.Allow("a"); ok {
			t.Error("a refused request gave a token back")
		}
	})
}

func TestIdleKeysAreForgottenAndBusyOnesAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(2)
		for i := range 1000 {
			l.Allow(fmt.Sprint(i))
		}
		time.Sleep(50 * time.Second)
		l.Allow("busy")
		l.Allow("busy")
		time.Sleep(20 * time.Second)
		l.Allow("one more")
		if n := len(l.buckets); n != 2 {
			t.Errorf("%d keys are kept, want 2", n)
		}
		if l.Allow("busy"); len(l.buckets) != 2 {
			t.Error("a key that was in use was forgotten")
		}
	})
}

func TestNoRateIsNoLimit(t *testing.T) {
	l := NewLimiter(0)
	for range 1000 {
		if _, ok := l.Allow("a"); !ok {
			t.Fatal("refused")
		}
	}
}

func TestAnIPv6ClientIsItsNetwork(t *testing.T) {
	h := PerIP(NewLimiter(1), ok, func(w http.ResponseWriter, wait time.Duration) { TooMany(w, wait, "this address") })
	status := func(addr string) int {
		r := httptest.NewRequest(http.MethodPost, "/oauth/register", nil)
		r.RemoteAddr = addr
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", addr)
		}
		return w.Code
	}
	for _, c := range []struct {
		addr string
		want int
	}{
		{"[2001:db8:1:2::1]:1", 200}, {"[2001:db8:1:2::2]:1", 429}, {"[2001:db8:1:3::1]:1", 200},
		{"198.51.100.1:1", 200}, {"198.51.100.1:2", 429}, {"198.51.100.2:1", 200},
	} {
		if got := status(c.addr); got != c.want {
			t.Errorf("%s: %d, want %d", c.addr, got, c.want)
		}
	}
}
