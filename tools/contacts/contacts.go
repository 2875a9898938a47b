// Package contacts is the people an organization talks to by phone.
//
// A contact is a phone number in E.164 form, once per organization, with what is known about its owner: name, e-mail
// address, tags, attributes (short facts that agents read and write), notes (for people only), the summary that
// agents remember from earlier calls, and the do-not-call flag, which no call and no campaign may ignore.
//
// This package owns the tables contacts and contact_tags.
package contacts

import (
	"context"
	"encoding/json"
	"fmt"

	"switchboard/internal/fault"
	"switchboard/internal/store"
)

// Contact is one person, as a row and as a result.
type Contact struct {
	ID         string      `json:"id" gorm:"primaryKey"`
	OrgID      store.OrgID `json:"-"`
	Phone      string      `json:"phone"`
	Name       *string     `json:"name"`  // null when it is not known
	Email      *string     `json:"email"` // null when it is not known
	Tags       []string    `json:"tags" gorm:"-"`
	Attributes Attributes  `json:"attributes" gorm:"serializer:json"`
	Notes      string      `json:"notes"`
	DoNotCall  bool        `json:"doNotCall"`
	Memory     string      `json:"memory"` // "" before the first call
	CallCount  int64       `json:"callCount"`
	Search     string      `json:"-"` // see fold
	CreatedAt  store.Time  `json:"createdAt" gorm:"autoCreateTime:false"`
	UpdatedAt  store.Time  `json:"updatedAt" gorm:"autoUpdateTime:false"`
}

// Subject implements kit's interface for audit records.
func (c Contact) Subject() string { return c.ID }

// tag is one tag of one contact.
type tag struct {
	ContactID string `gorm:"primaryKey"`
	Tag       string `gorm:"primaryKey"`
	OrgID     store.OrgID
	Position  int
}

// TableName tells the tags of contacts from those of other things.
func (tag) TableName() string { return "contact_tags" }

// Attributes is short facts by name, kept as JSON in a text column. In a row it is never nil.
type Attributes map[string]string

// maxAttributes and maxAttributesSize bound what every call to an agent carries along. With the bounds of the other
// fields they also keep every contact small enough to be read and listed, whatever signs it is made of.
const (
	maxAttributes     = 100
	maxAttributesSize = 10_000 // bytes as JSON, with signs of HTML escaped as they are sent
)

// merge sets the given facts and clears those that are given as "".
func (a Attributes) merge(changes map[string]string) error {
	for key, value := range changes {
		if value == "" {
			delete(a, key)
		} else {
			a[key] = value
		}
	}
	if len(a) > maxAttributes {
		return fault.New(fault.InvalidRequest, "attributes: a contact holds at most %d. Clear some by setting them to \"\".", maxAttributes).
			With("field", "attributes")
	}
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("measuring attributes: %w", err)
	}
	if size := len(text); size > maxAttributesSize {
		return fault.New(fault.InvalidRequest, "attributes: all of them together may have %d bytes as JSON. Clear some by setting them to \"\".", maxAttributesSize).
			With("field", "attributes")
	}
	return nil
}

// Config is given by tools.All, the only place that knows which domains there are.
type Config struct {
	Store *store.Store
}

// Service has the handlers of this package's tools as its methods, see tools.go.
type Service struct {
	store *store.Store
}

// New makes what tools.All takes the Area of. A Service keeps nothing in memory, and any number may run side by side.
func New(cfg Config) *Service { return &Service{store: cfg.Store} }

// Any reports whether the organization has a contact. It is this domain's part of get_started.
func (s *Service) Any(ctx context.Context) (bool, error) {
	var found []Contact
	err := s.store.DB(ctx).Select("id").Limit(1).Find(&found).Error
	if err != nil {
		return false, fmt.Errorf("looking for contacts: %w", err)
	}
	return len(found) > 0, nil
}

// readTags reads the tags of contacts into them.
func (s *Service) readTags(ctx context.Context, contacts []Contact) error {
	at := make(map[string]int, len(contacts))
	ids := make([]string, len(contacts))
	for i, c := range contacts {
		ids[i], at[c.ID] = c.ID, i
	}
	var tags []tag
	err := s.store.DB(ctx).Where("contact_id IN ?", ids).Order("contact_id, position").Find(&tags).Error
	if err != nil {
		return fmt.Errorf("reading tags: %w", err)
	}
	for _, t := range tags {
		c := &contacts[at[t.ContactID]]
		c.Tags = append(c.Tags, t.Tag)
	}
	return nil
}
