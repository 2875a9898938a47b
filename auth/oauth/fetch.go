package oauth

import (
	"context"
	"errors"
	"fmt"
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
	fetchesPerMinute       = 60  // caused by one IP
	hostFetchesPerMinute   = 120 // from a host and port, of clients that are new here
	shareFetchesPerMinute  = 20  // of these, caused by one IP
	clientFetchesPerMinute = 6   // of one client's document, and of its keys, whatever became of them
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
	host   *web.Limiter // for each host and port
	share  *web.Limiter // for each IP at each of them
	client *web.Limiter // for each client

	mu   sync.Mutex
	busy map[string]int // fetches under way, by who caused them and by where they go
}

func newLane(limit func(perMinute int) *web.Limiter) *lane {
	return &lane{
		slots: make(chan struct{}, fetchesAtOnce), busy: map[string]int{},
		host: limit(hostFetchesPerMinute), share: limit(shareFetchesPerMinute), client: limit(clientFetchesPerMinute),
	}
}

// enter takes a place for a fetch that somebody caused, and waits a little for one. A place at the host is taken too,
// unless to is "".
func (l *lane) enter(from, to string) (leave func(), err error) {
	if !l.count(from, to) {
		return nil, errBusy
	}
	if !l.takeSlot() {
		l.uncount(from, to)
		return nil, errBusy
	}
	return func() { <-l.slots; l.uncount(from, to) }, nil
}

func (l *lane) count(from, to string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy["from "+from] >= fetchesAtOnceOfIP || to != "" && l.busy["to "+to] >= fetchesAtOnceOfHost {
		return false
	}
	l.busy["from "+from]++
	l.busy["to "+to]++
	return true
}

func (l *lane) uncount(from, to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range []string{"from " + from, "to " + to} {
		if l.busy[who]--; l.busy[who] == 0 {
			delete(l.busy, who)
		}
	}
}

func (l *lane) takeSlot() bool {
	patience := time.NewTimer(slotPatience)
	defer patience.Stop()
	select {
	case l.slots <- struct{}{}:
		return true
	case <-patience.C:
		return false
	}
}

// fetch gets what a client publishes at an address, for the request r. A known one is fetched however often others at
// its host were: it is asked for seldom enough by itself, and must not go stale because strangers name that host.
func (s *Server) fetch(r *http.Request, l *lane, clientID, address string, known bool) (*outbound.Response, error) {
	u, err := url.Parse(address)
	if err != nil || !s.ClientHosts.admits(address) {
		return nil, errors.New("the host is not admitted")
	}
	if _, ok := s.limits.fetch.AllowIP(r); !ok {
		return nil, errBusy
	}
	from, to := web.ClientNetwork(r), ""
	if !known {
		to = origin.Host(u) + ":" + u.Port()
	}
	leave, err := l.enter(from, to)
	if err != nil {
		return nil, err
	}
	defer leave()
	if !l.mayAsk(clientID, from, to) {
		return nil, errBusy
	}
	// Others may wait for the same answer.
	resp, err := s.Outbound.Get(context.WithoutCancel(r.Context()), address, "application/json", maxMetadata)
	if err == nil && (resp.Status >= http.StatusInternalServerError || resp.Status == http.StatusTooManyRequests) {
		return nil, fmt.Errorf("%s answers %d", u.Host, resp.Status)
	}
	return resp, err
}

// mayAsk takes from what may be asked of a client and, unless to is "", of its host.
func (l *lane) mayAsk(clientID, from, to string) bool {
	if to != "" {
		if _, ok := l.share.Allow(from + " " + to); !ok {
			return false
		}
		if _, ok := l.host.Allow(to); !ok {
			return false
		}
	}
	_, ok := l.client.Allow(clientID)
	return ok
}
