package web

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/internal/caller"
)

// notes are what inner handlers know and the access log does not: the organization, the connection, the tool.
type notes struct {
	mu    sync.Mutex
	attrs []slog.Attr
}

type notesKey struct{}

// Note adds attributes to the access log line of the request. The keys are of the fixed vocabulary (flow org conn
// tool call err) and the values are ids and names of ours, never anything that a client wrote.
func Note(ctx context.Context, attrs ...slog.Attr) {
	if n, ok := ctx.Value(notesKey{}).(*notes); ok {
		n.mu.Lock()
		n.attrs = append(n.attrs, attrs...)
		n.mu.Unlock()
	}
}

// accessLog writes one line a request. It names the route that matched and never the path or the query: those
// carry codes, links and whatever else a client put there.
func (e *Edge) accessLog(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		n := &notes{}
		r = r.WithContext(context.WithValue(r.Context(), notesKey{}, n))
		m := &meter{ResponseWriter: w}
		defer func() {
			route := routeOf(r)
			attrs := []slog.Attr{
				slog.String("request", caller.Request(r.Context())),
				slog.String("method", methodOf(r)),
				slog.String("route", route),
				slog.Int("status", m.statusCode()),
				slog.Int64("bytes", m.bytes),
				slog.Float64("ms", float64(time.Since(began).Microseconds())/1000),
			}
			n.mu.Lock()
			attrs = append(attrs, n.attrs...)
			n.mu.Unlock()
			e.log.LogAttrs(r.Context(), levelOf(route, m.statusCode()), "request", attrs...)
		}()
		next.ServeHTTP(m, r)
	})
}

func levelOf(route string, status int) slog.Level {
	switch {
	case status == http.StatusServiceUnavailable:
		return slog.LevelWarn // what cannot be reached has a line of its own, and may be another server
	case status >= 500:
		return slog.LevelError
	case route == "/healthz" || route == "/readyz":
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// routeOf is the path of the pattern that the mux matched.
func routeOf(r *http.Request) string {
	_, path, ok := strings.Cut(r.Pattern, " ")
	if !ok {
		path = r.Pattern
	}
	if path == "" {
		return "none"
	}
	return path
}

// methodOf keeps a made-up method, which may say anything, out of the log.
func methodOf(r *http.Request) string {
	known := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}
	if slices.Contains(known, r.Method) {
		return r.Method
	}
	return "other"
}

// meter counts what goes out.
type meter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (m *meter) WriteHeader(status int) {
	// 1xx are hints before the answer; 101 is the answer.
	if m.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		m.status = status
	}
	m.ResponseWriter.WriteHeader(status)
}

func (m *meter) Write(b []byte) (int, error) {
	if m.status == 0 {
		m.status = http.StatusOK
	}
	n, err := m.ResponseWriter.Write(b)
	m.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (m *meter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

func (m *meter) statusCode() int {
	if m.status == 0 {
		return http.StatusOK // what net/http sends for a handler that wrote nothing
	}
	return m.status
}
