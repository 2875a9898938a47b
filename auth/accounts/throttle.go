package accounts

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"switchboard/internal/web"
)

// Throttled is the answer to somebody who failed too often. Only failures count, per address and per IP.
type Throttled struct{ RetryAfter time.Duration }

func (t *Throttled) Error() string {
	return fmt.Sprintf("too many failed sign-ins, try again in %s", t.RetryAfter.Round(time.Second))
}

const (
	failuresPerAddress = 5
	failuresPerIP      = 30
	failureMemory      = 15 * time.Minute // failures older than this are forgotten
	failurePause       = time.Minute
)

// throttle counts failed sign-ins. It lives in memory: with several replicas each counts on its own, which lets
// through a small multiple of the limit and nothing worse.
type throttle struct {
	mu   sync.Mutex
	seen map[string]*failures
}

type failures struct {
	count   int // failed ones and those under way, which count as failed until they succeed
	last    time.Time
	blocked time.Time
}

func newThrottle() *throttle { return &throttle{seen: map[string]*failures{}} }

// begin reserves one attempt for an address and an IP. The attempt counts as failed until it is told otherwise, so
// that parallel guesses do not slip through together.
func (t *throttle) begin(address, ip string) (give *attempt, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.forget(now)
	ip = network(ip)
	limits := map[string]int{"address " + address: failuresPerAddress, "ip " + ip: failuresPerIP}
	for key := range limits {
		if f := t.seen[key]; f != nil && now.Before(f.blocked) {
			return nil, &Throttled{f.blocked.Sub(now)}
		}
	}
	give = &attempt{t: t, address: "address " + address, ip: "ip " + ip, before: map[string]failures{}, after: map[string]failures{}}
	for key, limit := range limits {
		f := t.seen[key]
		if f == nil {
			f = &failures{}
			t.seen[key] = f
		}
		give.before[key] = *f
		f.last = now
		if f.count++; f.count >= limit {
			f.blocked = now.Add(failurePause)
			f.count = limit - 1 // after the pause, one more try for each pause
		}
		give.after[key] = *f
	}
	return give, nil
}

// attempt is one try at signing in, counted as failed.
type attempt struct {
	t             *throttle
	address, ip   string
	before, after map[string]failures
}

// succeeded clears the address, and gives the IP back what this attempt took from it and no more: somebody with an
// account of their own must not be able to buy guesses at others with it.
func (a *attempt) succeeded() {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	delete(a.t.seen, a.address)
	a.giveBack(a.ip)
}

// withdrawn undoes an attempt in which no password was compared: trouble of ours is nobody's failure.
func (a *attempt) withdrawn() {
	a.t.mu.Lock()
	defer a.t.mu.Unlock()
	a.giveBack(a.address)
	a.giveBack(a.ip)
}

func (a *attempt) giveBack(key string) {
	f := a.t.seen[key]
	if f == nil {
		return
	}
	f.count = max(0, f.count-(a.after[key].count-a.before[key].count))
	if f.blocked.Equal(a.after[key].blocked) {
		f.blocked = a.before[key].blocked
	}
}

func (t *throttle) forget(now time.Time) {
	for key, f := range t.seen {
		if now.Sub(f.last) > failureMemory {
			delete(t.seen, key)
		}
	}
}

// network is what an IP shares its failures with.
func network(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	return web.Network(addr.Unmap())
}
