package contacts

import "switchboard/tools/kit"

const shape = "{ id, phone, name, email, tags, attributes, notes, doNotCall, memory, callCount, createdAt, updatedAt }"

// Area is what this package adds to the product.
func (s *Service) Area() kit.Area {
	return kit.Area{Name: "contacts", Toolset: kit.Voice, Tools: []kit.Tool{
		kit.New(kit.Spec{
			Name: "list_contacts", Title: "List contacts", Scope: "contacts:read",
			Doc: "List contacts, newest first, all of them or those that a search, a phone number, a tag or the do-not-call flag selects. " +
				"Returns { contacts, nextCursor }; pass nextCursor as cursor to get the next page, it is absent on the last one. " +
				"A contact is " + shape + ".",
			Example: `{"search":"sara","limit":20}`,
		}, s.List),

		kit.New(kit.Spec{
			Name: "get_contact", Title: "Get a contact", Scope: "contacts:read",
			Doc: "Read one contact by id or phone number, with the memory that agents are given at the start of a call. " +
				"Returns the contact, " + shape + ", or the error not_found.",
			Example: `{"phone":"+14155550123"}`,
		}, s.Contact),

		kit.New(kit.Spec{
			Name: "upsert_contact", Title: "Create or update a contact", Scope: "contacts:write",
			Effect: kit.Write, Idempotent: true,
			Doc: "Make the contact of a phone number, or change it when there is one. Attributes are added to those that are known; tags take the place of the old ones; " +
				"what you leave out stays as it is. Returns { created, contact }; contact is " + shape + ".",
			Example: `{"phone":"+14155550123","name":"Sara Ahmed","tags":["vip"],"attributes":{"plan":"pro"}}`,
		}, s.Upsert),

		kit.New(kit.Spec{
			Name: "set_do_not_call", Title: "Set do-not-call", Scope: "contacts:write",
			Effect: kit.Write, Idempotent: true,
			Doc: "Block outbound calls to a contact, or allow them again. Calls and campaigns refuse a blocked contact. " +
				"Returns the contact with the new flag, " + shape + ".",
			Example: `{"phone":"+14155550123","doNotCall":true}`,
		}, s.SetDoNotCall),
	}}
}
