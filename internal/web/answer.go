package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"switchboard/internal/fault"
)

// JSON answers with v. v is a value of ours, so one that cannot be encoded is a programming error.
func JSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("encoding an answer: %v", err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that is gone is no error of ours
}

// Refuse answers with an error as JSON, {"error":{"code","message","details"}}, that no cache may keep.
func Refuse(w http.ResponseWriter, status int, f *fault.Error) {
	w.Header().Set("Cache-Control", "no-store")
	JSON(w, status, f.Body())
}

// Fault answers with an error and the status that goes with its code.
func Fault(w http.ResponseWriter, f *fault.Error) { Refuse(w, f.Code.Status(), f) }

// TooMany answers 429 and says when to come back, RFC 6585 §4.
func TooMany(w http.ResponseWriter, retryAfter time.Duration, who string) {
	seconds := max(1, int(math.Ceil(retryAfter.Seconds())))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	Fault(w, fault.New(fault.RateLimited, "Too many requests from %s. Wait %d s, then try again.", who, seconds).
		With("retryAfterSeconds", seconds))
}
