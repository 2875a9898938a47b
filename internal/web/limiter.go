package web

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter is a token bucket per key. A key may use its whole minute at once and then gets it back evenly. State is
// in memory: two replicas allow twice as much, which a limit against runaway loops can bear.
type Limiter struct {
	perMinute int

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	swept   time.Time
}

// NewLimiter makes a Limiter; 0 or less a minute means no limit.
func NewLimiter(perMinute int) *Limiter {
	return &Limiter{perMinute: perMinute, buckets: map[string]*rate.Limiter{}}
}

// Allow takes one token of the key's bucket. When there is none, ok is false and retryAfter is when there will be.
func (l *Limiter) Allow(key string) (retryAfter time.Duration, ok bool) {
	if l.perMinute <= 0 {
		return 0, true
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	b, known := l.buckets[key]
	if !known {
		b = rate.NewLimiter(rate.Limit(float64(l.perMinute)/60), l.perMinute)
		l.buckets[key] = b
	}
	r := b.ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait, false
	}
	return 0, true
}

// sweep forgets the keys whose bucket is full again: a new one would be the same. A bucket fills within a minute,
// so what is kept is bounded by the keys of the last two.
func (l *Limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < time.Minute {
		return
	}
	l.swept = now
	for key, b := range l.buckets {
		if b.TokensAt(now) >= float64(l.perMinute) {
			delete(l.buckets, key)
		}
	}
}

// AllowIP takes one token of the client's address.
func (l *Limiter) AllowIP(r *http.Request) (retryAfter time.Duration, ok bool) {
	return l.Allow(ClientNetwork(r))
}

// ClientNetwork is whose share of limits for each IP a request uses.
func ClientNetwork(r *http.Request) string { return Network(clientOf(r).ip) }

// PerIP has refuse answer a client address that uses up its share.
func PerIP(l *Limiter, next http.Handler, refuse func(w http.ResponseWriter, retryAfter time.Duration)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait, ok := l.AllowIP(r); !ok {
			refuse(w, wait)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Network is whose share an address uses. An IPv6 client is its /64: it can pick any address in there.
func Network(ip netip.Addr) string {
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
