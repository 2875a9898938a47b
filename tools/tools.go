// Package tools is the catalogue: everything the product can do, put together in one screen. A domain is a folder
// here; what one needs of another is passed to it below.
package tools

import (
	"switchboard/internal/store"
	"switchboard/tools/contacts"
	"switchboard/tools/kit"
	"switchboard/tools/org"
)

// Deps is what the domains need of the rest of the product.
type Deps struct {
	Store         *store.Store
	Organizations org.Organizations
	URL           string // public origin, for links to pages
}

// All puts the domains together. A tool that is not in its answer does not exist: no face finds tools in another way.
func All(d Deps) kit.Registry {
	people := contacts.New(contacts.Config{Store: d.Store})
	organization := org.New(org.Config{
		Store: d.Store, Organizations: d.Organizations, URL: d.URL,
		Guides: []org.Guide{
			{
				Step: "Add a contact",
				Why:  "Agents greet people by name and remember them from call to call, and do-not-call marks are kept on contacts.",
				Tool: "upsert_contact",
				Done: people.Any,
			},
		},
	})
	return kit.NewRegistry(organization.Area(), people.Area())
}
