package web

import (
	"mime"
	"net/http"
	"strings"
)

// Media is the media type of a request's body in small letters, without parameters. It is "" where whoever stands in
// front of us may have read another one: it is said twice (RFC 9110 §8.3 has it once), or the body is compressed, which
// nobody here undoes (§8.4).
func Media(r *http.Request) string {
	types := r.Header.Values("Content-Type")
	if len(types) != 1 {
		return ""
	}
	for _, coding := range r.Header.Values("Content-Encoding") {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return ""
		}
	}
	media, _, err := mime.ParseMediaType(types[0])
	if err != nil {
		return ""
	}
	return media
}
