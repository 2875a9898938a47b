package contacts

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm/clause"

	"switchboard/internal/store"
	"switchboard/tools/kit"
)

// Upsert is the input of upsert_contact. What is absent stays as it is.
type Upsert struct {
	Phone      kit.Phone               `json:"phone" doc:"Phone number in E.164 form. It says which contact: a new one is made when nobody has it yet."`
	Name       kit.Optional[string]    `json:"name" max:"120" doc:"Full name; null clears it."`
	Email      kit.Optional[kit.Email] `json:"email" doc:"E-mail address; null clears it."`
	Attributes map[string]string       `json:"attributes,omitzero" keys:"max=64" values:"max=500" doc:"Short facts by name, such as plan: pro, added to those that are known; a contact holds up to 100 of them and 10 kB. Set one to \"\" to clear it. Agents read and change them during calls."`
	Tags       []string                `json:"tags,omitzero" max:"50" items:"min=1 max=64" doc:"All tags of the contact, in place of those it has."`
	Notes      *string                 `json:"notes" max:"4000" doc:"Notes for people; agents never say them."`
	DoNotCall  *bool                   `json:"doNotCall" doc:"true: nobody may call this contact."`
}

// Upserted is the result of upsert_contact.
type Upserted struct {
	Created bool    `json:"created"`
	Contact Contact `json:"contact"`
}

// Subject implements kit's interface for audit records.
func (u Upserted) Subject() string { return u.Contact.ID }

// Upsert implements upsert_contact.
func (s *Service) Upsert(ctx context.Context, in Upsert) (Upserted, error) {
	var out Upserted
	err := s.store.Tx(ctx, func(ctx context.Context) (err error) {
		if out.Contact, out.Created, err = s.lock(ctx, in.Phone); err != nil {
			return err
		}
		return s.change(ctx, &out.Contact, in.apply)
	})
	return out, err
}

// apply changes a contact as asked.
func (in Upsert) apply(c *Contact) error {
	if in.Name.Set {
		c.Name = filled(in.Name.Value)
	}
	if in.Email.Set {
		c.Email = filled(in.Email.Value)
	}
	if in.Tags != nil {
		c.Tags = distinct(in.Tags)
	}
	if in.Notes != nil {
		c.Notes = *in.Notes
	}
	if in.DoNotCall != nil {
		c.DoNotCall = *in.DoNotCall
	}
	return c.Attributes.merge(in.Attributes)
}

// filled makes an empty text the same as none.
func filled[T ~string](s *T) *string {
	if s == nil || *s == "" {
		return nil
	}
	text := string(*s)
	return &text
}

func distinct(tags []string) []string {
	out := []string{}
	for _, t := range tags {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// SetDoNotCall is the input of set_do_not_call.
type SetDoNotCall struct {
	ContactID *string    `json:"contactId" min:"1" max:"64" doc:"Id of the contact. Give this or phone, not both."`
	Phone     *kit.Phone `json:"phone" doc:"Phone number in E.164 form. A contact is made when nobody has it yet, so that the flag holds for later."`
	DoNotCall bool       `json:"doNotCall" default:"true" doc:"true: nobody may call this contact; false: calls are allowed again."`
}

// SetDoNotCall implements set_do_not_call.
func (s *Service) SetDoNotCall(ctx context.Context, in SetDoNotCall) (Contact, error) {
	if err := oneOf(in.ContactID, in.Phone); err != nil {
		return Contact{}, err
	}
	var c Contact
	err := s.store.Tx(ctx, func(ctx context.Context) (err error) {
		if in.Phone != nil {
			c, _, err = s.lock(ctx, *in.Phone)
		} else {
			c, err = s.take(ctx, s.store.Locked(ctx).Where("id = ?", *in.ContactID))
		}
		if err != nil {
			return err
		}
		return s.change(ctx, &c, func(c *Contact) error { c.DoNotCall = in.DoNotCall; return nil })
	})
	return c, err
}

// lock makes the contact of a phone number if there is none, and reads it for change. Of several callers at once one
// makes it and the others wait and find it.
func (s *Service) lock(ctx context.Context, phone kit.Phone) (c Contact, created bool, err error) {
	now := store.Now()
	fresh := Contact{ID: store.NewID("con"), Phone: string(phone), Attributes: Attributes{}, CreatedAt: now, UpdatedAt: now}
	fresh.Search = fresh.searchable()
	made := s.store.DB(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&fresh)
	if made.Error != nil {
		return Contact{}, false, fmt.Errorf("making a contact: %w", made.Error)
	}
	c, err = s.take(ctx, s.store.Locked(ctx).Where("phone = ?", phone))
	return c, made.RowsAffected == 1, err
}

// change applies a change to a contact that was read for it and writes what became different. A change that changes
// nothing leaves updatedAt alone.
func (s *Service) change(ctx context.Context, c *Contact, apply func(*Contact) error) error {
	before := *c
	before.Attributes = maps.Clone(c.Attributes)
	if err := apply(c); err != nil {
		return err
	}
	retagged := !slices.Equal(before.Tags, c.Tags)
	if c.same(before) && !retagged {
		return nil
	}
	c.Search = c.searchable()
	if c.UpdatedAt = store.Now(); c.UpdatedAt.Before(before.UpdatedAt.Time) {
		c.UpdatedAt = before.UpdatedAt // a clock that went back
	}
	if err := s.store.DB(ctx).Select("*").Updates(c).Error; err != nil {
		return fmt.Errorf("changing a contact: %w", err)
	}
	if !retagged {
		return nil
	}
	if err := s.store.DB(ctx).Where("contact_id = ?", c.ID).Delete(&tag{}).Error; err != nil {
		return fmt.Errorf("replacing tags: %w", err)
	}
	rows := make([]tag, len(c.Tags))
	for i, t := range c.Tags {
		rows[i] = tag{ContactID: c.ID, Tag: t, Position: i}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := s.store.DB(ctx).Create(&rows).Error; err != nil {
		return fmt.Errorf("replacing tags: %w", err)
	}
	return nil
}

// same compares what a change can change, tags aside.
func (c Contact) same(d Contact) bool {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return text(c.Name) == text(d.Name) && text(c.Email) == text(d.Email) && c.Notes == d.Notes &&
		c.DoNotCall == d.DoNotCall && maps.Equal(c.Attributes, d.Attributes)
}
