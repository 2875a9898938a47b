package outbound

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	neturl "net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// canary is an https server on this machine that counts who gets through to it, connections and requests.
type canary struct {
	server            *httptest.Server
	port              uint16
	dialled, answered atomic.Int64
}

func newCanary(t *testing.T, h http.HandlerFunc) *canary {
	t.Helper()
	c := &canary{}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.answered.Add(1)
		if h != nil {
			h(w, r)
		}
	}))
	c.server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			c.dialled.Add(1)
		}
	}
	c.server.StartTLS()
	t.Cleanup(c.server.Close)
	c.port = uint16(c.server.Listener.Addr().(*net.TCPAddr).Port)
	return c
}

func (c *canary) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.server.Certificate())
	return pool
}

// names is a DNS server that answers as the test says: for each name a list of answers, one after the other, each
// with some addresses. The last one stays.
func names(t *testing.T, answers map[string][][]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go serveNames(conn, answers)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func serveNames(conn net.PacketConn, answers map[string][][]string) {
	asked := map[string]int{}
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.Authoritative, m.Additionals = true, true, nil
		name := strings.TrimSuffix(q.Name.String(), ".")
		if list := answers[name]; len(list) > 0 && q.Type == dnsmessage.TypeA {
			for _, ip := range list[min(asked[name], len(list)-1)] {
				m.Answers = append(m.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(ip).As4()},
				})
			}
			asked[name]++
		}
		if out, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(out, from)
		}
	}
}

func TestNoSpellingOfAPrivateAddressIsReached(t *testing.T) {
	c := newCanary(t, nil)
	resolver := names(t, map[string][][]string{
		"inside.example":  {{"127.0.0.1"}},
		"both.example":    {{"198.51.100.1", "127.0.0.1"}},
		"rebinds.example": {{"192.0.2.1"}, {"127.0.0.1"}},
		"meta.example":    {{"169.254.169.254"}},
	})
	client := New(Config{Roots: c.roots(), Resolver: resolver, Timeout: 2 * time.Second, Names: []string{"switch.example"}})
	p := fmt.Sprint(c.port)
	refused := []string{
		"https://127.0.0.1:" + p, "https://127.0.0.2:" + p, "https://127.1:" + p, "https://127.0.1:" + p,
		"https://2130706433:" + p, "https://0x7f000001:" + p, "https://0x7f.0.0.1:" + p, "https://0177.0.0.1:" + p, "https://017700000001:" + p,
		"https://localhost:" + p, "https://LOCALHOST.:" + p, "https://0.0.0.0:" + p, "https://0:" + p,
		"https://[::1]:" + p, "https://[::]:" + p, "https://[0:0:0:0:0:0:0:1]:" + p,
		"https://[::ffff:127.0.0.1]:" + p, "https://[::ffff:7f00:1]:" + p, "https://[::127.0.0.1]:" + p, "https://[::7f00:1]:" + p,
		"https://[64:ff9b::7f00:1]:" + p, "https://[64:ff9b::a9fe:a9fe]/", "https://[64:ff9b:1::7f00:1]:" + p,
		"https://[2002:7f00:1::]:" + p, "https://[2002:a9fe:a9fe::1]/", "https://[2001:0:7f00:1::1]:" + p,
		"https://[fe80::1]:" + p, "https://[fe80::1%25lo]:" + p, "https://[fc00::1]/", "https://[fd00:ec2::254]/", "https://[ff02::1]/", "https://[100::1]/",
		"https://[2001:db8::1]/", "https://[3fff::1]/", "https://[5f00::1]/",
		"https://169.254.169.254/latest/meta-data/", "https://[::ffff:169.254.169.254]/", "https://168.63.129.16/", "https://100.100.100.200/",
		"https://10.0.0.1/", "https://172.16.0.1/", "https://172.31.255.255/", "https://192.168.1.1/", "https://100.64.0.1/",
		"https://192.0.0.192/", "https://192.0.2.1/", "https://198.18.0.1/", "https://203.0.113.1/", "https://224.0.0.1/", "https://240.0.0.1/", "https://255.255.255.255/",
		"https://inside.example:" + p, "https://both.example:" + p, "https://rebinds.example:" + p, "https://rebinds.example:" + p + "/again", "https://meta.example/",
		"https://switch.example/", "https://SWITCH.example./", "https://%EF%BD%93witch.example/", "https://\uff53witch.example/", "https://switch%C2%AD.example/", "https://switch%E3%80%82example/", "https://127.0.0.%EF%BC%91:" + p, "https://u:p@198.51.100.1/", "https://127.0.0.1:" + p + "@198.51.100.1/",
		"http://127.0.0.1:" + p, "http://198.51.100.1/", "ftp://198.51.100.1/", "file:///etc/passwd", "gopher://127.0.0.1:" + p, "//127.0.0.1:" + p, "127.0.0.1:" + p, "",
	}
	for _, url := range refused {
		got, err := client.Get(t.Context(), url, "application/json", 1<<10)
		if err == nil {
			t.Errorf("%s was reached: %+v", url, got)
		}
		// Nothing of ours listens at the others: only the guard's own words tell that they were not tried.
		u, _ := neturl.Parse(url)
		if u == nil || u.Scheme != "https" {
			continue
		}
		if ip, notIP := netip.ParseAddr(u.Hostname()); notIP == nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%s was tried: %v", ip, err)
		}
	}
	for _, ip := range ownAddresses(t) {
		if got, err := client.Get(t.Context(), "https://"+netip.AddrPortFrom(ip, c.port).String(), "application/json", 1<<10); err == nil || !errors.Is(err, ErrRefused) {
			t.Errorf("the machine's own address %s: %+v %v", ip, got, err)
		}
	}
	if c.dialled.Load() != 0 {
		t.Errorf("the canary saw %d connections", c.dialled.Load())
	}
	if len(refused) < 25 {
		t.Errorf("only %d addresses were tried", len(refused))
	}
}

func ownAddresses(t *testing.T) (out []netip.Addr) {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr())
		}
	}
	return out
}

func TestAnAllowedNetworkIsReachedButForTheServersOwnPorts(t *testing.T) {
	c := newCanary(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Header.Get("Accept"), r.Header.Get("User-Agent"))
	})
	allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	url := fmt.Sprintf("https://127.0.0.1:%d/x", c.port)
	got, err := New(Config{Allow: allow, Roots: c.roots(), UserAgent: "Switchboard"}).Get(t.Context(), url, "application/json", 1<<10)
	if err != nil || got.Status != 200 || string(got.Body) != "application/json Switchboard" {
		t.Fatalf("%+v %v", got, err)
	}
	before := c.dialled.Load()
	own := New(Config{Allow: allow, Roots: c.roots(), Ports: []uint16{c.port}})
	for _, host := range []string{"127.0.0.1", "127.0.0.9", "[::ffff:127.0.0.1]"} {
		if _, err := own.Get(t.Context(), fmt.Sprintf("https://%s:%d/x", host, c.port), "*/*", 1<<10); !errors.Is(err, ErrRefused) {
			t.Errorf("the server reached itself at %s: %v", host, err)
		}
	}
	if c.dialled.Load() != before {
		t.Error("the server dialled itself")
	}
}

func TestAnAnswerHasASizeATimeAndNoNextPlace(t *testing.T) {
	elsewhere := newCanary(t, nil)
	c := newCanary(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = w.Write(make([]byte, 2000))
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		case "/redirect":
			http.Redirect(w, r, elsewhere.server.URL, http.StatusFound)
		case "/silent":
			<-r.Context().Done()
		case "/slow":
			for range 100 {
				_, _ = w.Write([]byte(" "))
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		case "/headers":
			w.Header().Set("X", strings.Repeat("a", 100<<10))
		}
	})
	within := func(patience time.Duration) *Client {
		return New(Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Roots: c.roots(), Timeout: patience})
	}
	const ample = 30 * time.Second // of a machine that is busy with other tests
	for path, want := range map[string]error{"/long": ErrTooLarge, "/endless": ErrTooLarge, "/headers": nil} {
		got, err := within(ample).Get(t.Context(), c.server.URL+path, "*/*", 1000)
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %+v %v", path, got, err)
		}
	}
	// Both end when they see us hang up, and may then look as if they had answered: that is a matter of microseconds.
	for range 10 {
		for _, path := range []string{"/silent", "/slow"} {
			if got, err := within(100*time.Millisecond).Get(t.Context(), c.server.URL+path, "*/*", 1000); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %+v %v", path, got, err)
			}
		}
	}
	got, err := within(ample).Get(t.Context(), c.server.URL+"/redirect", "*/*", 1000)
	if err != nil || got.Status != http.StatusFound || elsewhere.dialled.Load() != 0 {
		t.Errorf("a redirect: %+v %v, followed %d times", got, err, elsewhere.dialled.Load())
	}
}

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	proxy := newCanary(t, nil)
	t.Setenv("HTTPS_PROXY", proxy.server.URL)
	t.Setenv("ALL_PROXY", proxy.server.URL)
	_, err := New(Config{Resolver: names(t, nil), Timeout: time.Second}).Get(t.Context(), "https://nowhere.example/", "*/*", 10)
	if err == nil || proxy.dialled.Load() != 0 {
		t.Errorf("%v, and the proxy saw %d connections", err, proxy.dialled.Load())
	}
}

func TestACertificateThatNobodyTrustsIsRefused(t *testing.T) {
	c := newCanary(t, nil)
	_, err := New(Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}).Get(t.Context(), c.server.URL, "*/*", 10)
	if err == nil || c.answered.Load() != 0 {
		t.Errorf("%v, %d answers", err, c.answered.Load())
	}
}
