package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"switchboard/internal/caller"
	"switchboard/internal/fault"
)

// recoverer turns a panic into a 500 that names the request, and a log record with the stack.
func (e *Edge) recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := &meter{ResponseWriter: w}
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it the same way
				panic(v)
			}
			id := caller.Request(r.Context())
			e.log.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("request", id),
				slog.String("err", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))
			if sent.status != 0 {
				// Half an answer is out. Cutting the connection is the only way left to say that it is not whole.
				panic(http.ErrAbortHandler)
			}
			f, _ := fault.Of(fmt.Errorf("panic: %v", v), id)
			e.refuse(w, r, http.StatusInternalServerError, f)
		}()
		next.ServeHTTP(sent, r)
	})
}
