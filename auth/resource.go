package auth

import "switchboard/internal/scope"

// Resource is a protected resource (RFC 9728): an endpoint that tokens are issued for.
type Resource struct {
	URL    string         // its identifier (RFC 8707), which is what people paste
	Name   string         // what its metadata calls it
	Scopes *scope.Catalog // what can be asked for there
	// Whole is the URL of the resource that this one is a part of; its tokens are good here too. A token for a part
	// is not good for the whole, nor for another part. "" for none.
	Whole string
}

// accepts decides whether a token that was issued for a resource is good at this one. Identifiers are compared as a
// whole (RFC 8707 §2): a prefix of a URL is another URL.
func (r Resource) accepts(audience string) bool {
	return audience != "" && (audience == r.URL || audience == r.Whole)
}

// resource finds a resource by its URL. One that is not known accepts only tokens of its own name.
func (a *Auth) resource(url string) Resource {
	for _, r := range a.Resources {
		if r.URL == url {
			return r
		}
	}
	return Resource{URL: url, Scopes: a.Scopes}
}
