package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ory/fosite"
	"github.com/pquerna/cachecontrol/cacheobject"

	"switchboard/auth"
	"switchboard/internal/origin"
	"switchboard/internal/outbound"
)

// Client ID Metadata Documents (draft-ietf-oauth-client-id-metadata-document-02): a client whose id is the https URL
// of a document about it. The document is fetched when a person is sent here, and its row then stands for the client
// like any other: codes, tokens and refreshes work while the document's server is away. The token endpoint reads it anew
// only for a client that signs with a key, when it is due or the key is not in it. Errors and bad documents are not kept, so
// the next attempt asks again.

// How long a document stands before it is fetched again, whatever its server says in between.
const (
	minDocumentLife = time.Minute
	maxDocumentLife = 24 * time.Hour
	noDocumentLife  = time.Hour        // when its server says nothing
	busyDocument    = 10 * time.Minute // and how long while we are too busy to ask
	staleDocument   = 24 * time.Hour   // how long one stands after that, while its server cannot be reached
)

// HostPolicy says which hosts a client's document may be on. Patterns are host names; "*.example.com" is every name
// below example.com, and "*" every name. Deny wins; where Allow is empty every other host is admitted.
type HostPolicy struct{ Allow, Deny []string }

// admitsNone reports whether no document is taken at all. The metadata does not offer it then: a client that has a
// document and reads that it may use it does not register when it fails.
func (p HostPolicy) admitsNone() bool {
	return slices.ContainsFunc(p.Deny, func(pattern string) bool { return strings.TrimSpace(pattern) == "*" })
}

// admits judges the host of a document's URL.
func (p HostPolicy) admits(id string) bool {
	u, err := url.Parse(id)
	if err != nil || !origin.IsPlain(u) {
		return false
	}
	host := origin.Host(u)
	on := func(list []string) bool {
		return slices.ContainsFunc(list, func(pattern string) bool {
			pattern = strings.ToLower(strings.TrimSpace(pattern))
			below, wild := strings.CutPrefix(pattern, "*")
			return host == pattern || pattern == "*" || wild && strings.HasPrefix(below, ".") && strings.HasSuffix(host, below)
		})
	}
	return !on(p.Deny) && (len(p.Allow) == 0 || on(p.Allow))
}

// isDocumentURL reports whether an id can be the URL of a document (§3 of the draft). It is compared character by
// character from then on, so what would be the same after normalizing is another client.
func isDocumentURL(id string) bool {
	u, err := url.Parse(id)
	if err != nil || !strings.HasPrefix(id, "https://") || len(id) > maxRedirectURI || strings.ContainsFunc(id, notInURI) {
		return false
	}
	dots := slices.ContainsFunc(strings.Split(u.Path, "/"), func(segment string) bool { return segment == "." || segment == ".." })
	return origin.IsPlain(u) && u.User == nil && !strings.Contains(id, "#") && len(u.Path) > 1 && !dots
}

// clientFor finds the client of an authorization request, and fetches its document where that is due.
func (s *Server) clientFor(r *http.Request, id string) (*client, error) {
	ctx := r.Context()
	c, err := s.find(ctx, id)
	missing := errors.Is(err, fosite.ErrNotFound)
	if err != nil && !missing {
		return nil, unavailable(err)
	}
	if !isDocumentURL(id) {
		if missing {
			return nil, &PageError{Status: http.StatusBadRequest, Code: "invalid_client", Reason: "unknown_client", cause: err}
		}
		return c, nil
	}
	if !s.ClientHosts.admits(id) {
		return nil, &PageError{Status: http.StatusForbidden, Code: "invalid_client", Reason: "document_refused", cause: errors.New("the host of the client's document is not admitted")}
	}
	if !missing && time.Now().Before(c.row.FreshUntil.Time) {
		return c, nil
	}
	if err := s.fetchDocument(r, id, !missing); err != nil {
		if !missing && stands(c, err) {
			return c, nil
		}
		return nil, err
	}
	if c, err = s.find(ctx, id); err != nil {
		return nil, unavailable(err)
	}
	return c, nil
}

// stands reports whether a document whose time is over still counts, given why it was not fetched again: its server is
// away, or we are too busy. One that was fetched and is no document any more counts no longer.
func stands(c *client, err error) bool {
	var page *PageError
	over := time.Since(c.row.FreshUntil.Time)
	return errors.As(err, &page) && page.Reason == "document_unreachable" &&
		(over < busyDocument || over < staleDocument && !errors.Is(err, errBusy))
}

// fetchDocument fetches a client's document and keeps it. Requests for the same one share one fetch, which goes on
// when the person who caused it has gone.
func (s *Server) fetchDocument(r *http.Request, id string, known bool) error {
	_, err, _ := s.fetches.Do("document "+id, func() (any, error) {
		ctx := context.WithoutCancel(r.Context())
		resp, err := s.fetch(r, s.documentLane, id, id, known)
		if err != nil {
			s.Log.InfoContext(ctx, "a client's metadata document was not fetched", "host", auth.DocumentHost(id), "err", err)
			return nil, &PageError{
				Status: http.StatusServiceUnavailable, Code: "temporarily_unavailable", Reason: "document_unreachable", RetryAfter: 10 * time.Second, cause: err,
			}
		}
		m, err := readDocument(id, resp, s.ClientHosts)
		var bad *badMetadata
		if errors.As(err, &bad) {
			if _, err := s.Store.Exec(ctx, `UPDATE clients SET fresh_until = 0 WHERE id = ?`, id); err != nil {
				return nil, unavailable(err)
			}
			return nil, &PageError{Status: http.StatusBadRequest, Code: "invalid_client", Reason: "document_invalid", Detail: bad.problem, cause: err}
		}
		if err != nil {
			return nil, unavailable(err)
		}
		return nil, s.keepDocument(ctx, id, m, documentLife(resp.Header))
	})
	return err
}

// readDocument checks a document (§4 and §5 of the draft).
func readDocument(id string, resp *outbound.Response, hosts HostPolicy) (clientMetadata, error) {
	if resp.Status != http.StatusOK {
		return clientMetadata{}, invalidMetadata("Its server answers %d instead of 200. Redirects are not followed.", resp.Status)
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return clientMetadata{}, invalidMetadata("Its content type is not application/json.")
	}
	members, err := parseMembers(resp.Body)
	if err != nil {
		return clientMetadata{}, err
	}
	var own string
	if json.Unmarshal(members["client_id"], &own) != nil || own != id {
		return clientMetadata{}, invalidMetadata("Its client_id is not the address that it is at.")
	}
	for _, secret := range []string{"client_secret", "client_secret_expires_at"} {
		if _, ok := members[secret]; ok {
			return clientMetadata{}, invalidMetadata("It holds a %s, which everybody can read.", secret)
		}
	}
	m, err := parseMetadata(members)
	if err != nil {
		return m, err
	}
	return m, m.checkDocument(hosts)
}

// checkDocument settles what a document leaves open. A redirect URI that we cannot serve is passed over, unlike in a
// registration: the document is for every server, and the client picks among the URIs as it asks.
func (m *clientMetadata) checkDocument(hosts HostPolicy) error {
	m.RedirectURIs = slices.DeleteFunc(m.RedirectURIs, func(uri string) bool { return registrable(uri) != "" })
	if m.AuthMethod == "" {
		m.AuthMethod = byNothing
	}
	switch {
	case m.ClientName == "":
		return invalidMetadata("It has no client_name.")
	case len(m.RedirectURIs) == 0:
		return invalidRedirects("None of its redirect_uris can be served.")
	case m.AuthMethod != byNothing && m.AuthMethod != byKey:
		return invalidMetadata("Its token_endpoint_auth_method needs a secret, which a public document cannot hold. Use none or private_key_jwt.")
	}
	return m.checkKeys(hosts)
}

// keepDocument writes what a document says into the client's row.
func (s *Server) keepDocument(ctx context.Context, id string, m clientMetadata, life time.Duration) error {
	row := newClientRow(id, kindDocument, m)
	_, err := s.Store.Exec(ctx, `INSERT INTO clients (id, kind, name, redirect_uris, metadata, auth_method, jwks, jwks_uri, jwks_at, fresh_until, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, redirect_uris = excluded.redirect_uris, metadata = excluded.metadata,
			auth_method = excluded.auth_method, fresh_until = excluded.fresh_until, jwks_uri = excluded.jwks_uri,
			jwks = CASE WHEN excluded.jwks = '' AND clients.jwks_uri = excluded.jwks_uri THEN clients.jwks ELSE excluded.jwks END,
			jwks_at = CASE WHEN excluded.jwks = '' AND clients.jwks_uri = excluded.jwks_uri THEN clients.jwks_at ELSE excluded.jwks_at END`,
		row.ID, row.Kind, row.Name, row.RedirectURIs, row.Metadata, row.AuthMethod, row.JWKS, row.JWKSURI, row.JWKSAt, row.CreatedAt.Add(life), row.CreatedAt)
	if err != nil {
		return unavailable(fmt.Errorf("keeping a client's document: %w", err))
	}
	return nil
}

// documentLife is how long a document stands, by its caching headers (RFC 9111 §4.2) within our bounds. The lower one
// also holds for what its server wants never kept: it is what keeps a link from sending its server a request for
// each click.
func documentLife(h http.Header) time.Duration {
	life := noDocumentLife
	said, err := cacheobject.ParseResponseCacheControl(strings.Join(h.Values("Cache-Control"), ","))
	expires, errExpires := http.ParseTime(h.Get("Expires"))
	switch {
	case err == nil && (said.NoStore || said.NoCachePresent):
		life = 0
	case err == nil && said.SMaxAge >= 0:
		life = time.Duration(said.SMaxAge) * time.Second
	case err == nil && said.MaxAge >= 0:
		life = time.Duration(said.MaxAge) * time.Second
	case errExpires == nil:
		life = time.Until(expires)
	case h.Get("Expires") != "": // RFC 9111 §5.3: anything that is no date is in the past
		life = 0
	}
	return min(max(life, minDocumentLife), maxDocumentLife)
}
