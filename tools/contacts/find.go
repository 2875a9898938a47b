package contacts

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"gorm.io/gorm"

	"switchboard/internal/fault"
	"switchboard/internal/store"
	"switchboard/tools/kit"
)

// List is the input of list_contacts.
type List struct {
	Search    string     `json:"search,omitzero" max:"120" doc:"Part of a name or e-mail address, or the beginning of a phone number. Upper and lower case are the same."`
	Phone     *kit.Phone `json:"phone" doc:"Exactly this phone number, in E.164 form: at most one contact."`
	Tag       *string    `json:"tag" max:"64" doc:"Only contacts with exactly this tag."`
	DoNotCall *bool      `json:"doNotCall" doc:"true: only contacts who must not be called; false: only those who may."`
	kit.Page
}

// Listed is the result of list_contacts.
type Listed struct {
	Contacts   []Contact `json:"contacts"`
	NextCursor string    `json:"nextCursor,omitzero"` // absent on the last page
}

// List implements list_contacts.
func (s *Service) List(ctx context.Context, in List) (Listed, error) {
	q := s.store.DB(ctx).Model(&Contact{})
	if in.Phone != nil {
		q = q.Where("phone = ?", *in.Phone)
	}
	if in.DoNotCall != nil {
		q = q.Where("do_not_call = ?", *in.DoNotCall)
	}
	if in.Tag != nil {
		q = q.Where("id IN (?)", s.store.DB(ctx).Model(&tag{}).Select("contact_id").Where("tag = ?", *in.Tag))
	}
	q = matching(q, in.Search)
	listing := kit.Listing[Contact]{
		Tool:     "list_contacts",
		Position: func(c Contact) kit.Position { return kit.Position{At: c.CreatedAt, ID: c.ID} },
		Complete: s.readTags,
	}
	found, next, err := listing.Read(ctx, q, in.Page)
	return Listed{Contacts: found, NextCursor: next}, err
}

// matching cuts a query to the contacts that a free text finds.
func matching(q *gorm.DB, text string) *gorm.DB {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return q
	}
	found := q.Session(&gorm.Session{NewDB: true}).Where(`search LIKE ? ESCAPE '\'`, "%"+literal(fold(text))+"%")
	if digits, ok := dialled(text); ok {
		found = found.Or(`phone LIKE ? ESCAPE '\'`, "+"+digits+"%")
	}
	return q.Where(found)
}

// fold takes away what a search does not look at: upper and lower case in every script, and the several ways to
// write one letter. The databases cannot do it alike, so the column holds it folded.
func fold(s string) string { return norm.NFC.String(cases.Fold().String(norm.NFKC.String(s))) }

// searchable is the text of a contact's search column. The line feed keeps a search from matching across the two.
func (c Contact) searchable() string {
	var name, email string
	if c.Name != nil {
		name = *c.Name
	}
	if c.Email != nil {
		email = *c.Email
	}
	return fold(strings.Join(strings.Fields(name), " ")) + "\n" + fold(email)
}

// literal writes a text so that LIKE takes it as it is.
func literal(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

// dialled reads the beginning of a phone number as people write it: +1 (415) 555.
func dialled(text string) (digits string, ok bool) {
	for _, r := range text {
		switch {
		case r >= '0' && r <= '9':
			digits += string(r)
		case !strings.ContainsRune("+-.() /", r):
			return "", false
		}
	}
	return digits, digits != ""
}

// Which names one contact.
type Which struct {
	ContactID *string    `json:"contactId" min:"1" max:"64" doc:"Id of the contact. Give this or phone, not both."`
	Phone     *kit.Phone `json:"phone" doc:"Phone number of the contact in E.164 form, such as +14155550123."`
}

func oneOf(id *string, phone *kit.Phone) error {
	if (id == nil) == (phone == nil) {
		return fault.New(fault.InvalidRequest, "contactId: give exactly one of contactId and phone.").With("field", "contactId")
	}
	return nil
}

// Contact implements get_contact.
func (s *Service) Contact(ctx context.Context, in Which) (Contact, error) {
	if err := oneOf(in.ContactID, in.Phone); err != nil {
		return Contact{}, err
	}
	q := s.store.DB(ctx)
	if in.ContactID != nil {
		q = q.Where("id = ?", *in.ContactID)
	} else {
		q = q.Where("phone = ?", *in.Phone)
	}
	return s.take(ctx, q)
}

// take reads the one contact that q finds.
func (s *Service) take(ctx context.Context, q *gorm.DB) (Contact, error) {
	var c Contact
	err := q.Take(&c).Error
	if store.IsNotFound(err) {
		return Contact{}, fault.New(fault.NotFound, "There is no such contact. Find it with list_contacts, or make it with upsert_contact.")
	}
	if err != nil {
		return Contact{}, fmt.Errorf("reading a contact: %w", err)
	}
	found := []Contact{c}
	err = s.readTags(ctx, found)
	return found[0], err
}
