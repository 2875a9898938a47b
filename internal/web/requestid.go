package web

import (
	"net/http"

	"switchboard/internal/caller"
	"switchboard/internal/store"
)

// RequestIDHeader carries the id of a request back to whoever sent it.
const RequestIDHeader = "X-Request-Id"

// identified gives every request an id of ours. One that the request brings along is ignored: an id that anybody
// can choose would let them write into our logs and audit records.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := store.NewID("req")
		w.Header().Set(RequestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(caller.WithRequest(r.Context(), id)))
	})
}
