package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"switchboard/internal/origin"
	"switchboard/internal/outbound"
	"switchboard/internal/web"
)

// What fetching from clients may cost. An address is whatever a link or a registration says, so this server must not
// become a way to send requests to others; and whoever sends many of them must not keep the rest from signing in.
const (
	fetchesPerMinute       = 60 // caused by one IP
	hostFetchesPerMinute   = 120
	clientFetchesPerMinute = 6 // of one client's document, and of its keys, whatever became of them
	fetchesAtOnce          = 64
	fetchesAtOnceOfIP      = 4
	fetchesAtOnceOfHost    = 8
	slotPatience           = 2 * time.Second
)

// errBusy is that a limit of ours was reached. It says nothing about the other side.
var errBusy = errors.New("too many fetches at this moment")

// lane is what fetches of one kind share. Documents and keys have one each, so that neither holds the other up.
type lane struct {
	slots  chan struct{}
	host   *web.Limiter // for each host
	client *web.Limiter // for each client

	mu   sync.Mutex
	busy map[string]int // fetches under way, by who caused them and by where they go
}

func newLane(limit func(perMinute int) *web.Limiter) *lane {
	return &lane{
		slots: make(chan struct{}, fetchesAtOnce), host: limit(hostFetchesPerMinute), client: limit(clientFetchesPerMinute), busy: map[string]int{},
	}
}

// enter takes a place for a fetch, and waits a little for one.
func (l *lane) enter(ctx context.Context, ip, host string) (leave func(), err error) {
	from, to := "from "+ip, "to "+host
	if !l.count(from, to) {
		return nil, errBusy
	}
	if !l.takeSlot(ctx) {
		l.uncount(from, to)
		return nil, errBusy
	}
	return func() { <-l.slots; l.uncount(from, to) }, nil
}

func (l *lane) count(from, to string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[from] >= fetchesAtOnceOfIP || l.busy[to] >= fetchesAtOnceOfHost {
		return false
	}
	l.busy[from]++
	l.busy[to]++
	return true
}

func (l *lane) uncount(parties ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range parties {
		if l.busy[who]--; l.busy[who] == 0 {
			delete(l.busy, who)
		}
	}
}

func (l *lane) takeSlot(ctx context.Context) bool {
	patience := time.NewTimer(slotPatience)
	defer patience.Stop()
	select {
	case l.slots <- struct{}{}:
		return true
	case <-patience.C:
	case <-ctx.Done():
	}
	return false
}

// fetch gets what a client publishes at an address, for the request r. A known one is fetched however often others at
// its host were: it is asked for seldom enough by itself, and must not go stale because strangers name that host.
func (s *Server) fetch(r *http.Request, l *lane, clientID, address string, known bool) (*outbound.Response, error) {
	u, err := url.Parse(address)
	if err != nil || !origin.IsPlain(u) || !s.ClientHosts.admits(address) {
		return nil, errors.New("the host is not admitted")
	}
	if _, ok := s.limits.fetch.AllowIP(r); !ok {
		return nil, errBusy
	}
	if !known {
		if _, ok := l.host.Allow(origin.Host(u)); !ok {
			return nil, errBusy
		}
	}
	ctx := context.WithoutCancel(r.Context()) // others may wait for the same
	leave, err := l.enter(ctx, web.ClientIP(r), origin.Host(u))
	if err != nil {
		return nil, err
	}
	defer leave()
	if _, ok := l.client.Allow(clientID); !ok {
		return nil, errBusy
	}
	return s.Outbound.Get(ctx, address, "application/json", maxMetadata)
}
