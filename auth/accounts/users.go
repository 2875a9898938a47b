package accounts

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/store"
)

// Invalid is bad input in one field. Reason is a word that the face puts into its reader's language.
type Invalid struct{ Field, Reason string }

func (i *Invalid) Error() string { return i.Field + ": " + i.Problem() }

// Problem is what is wrong, in English, for the command line.
func (i *Invalid) Problem() string {
	return map[string]string{
		"required":  "is missing",
		"too_short": fmt.Sprintf("needs at least %d characters", MinPassword),
		"too_long":  "is too long",
		"email":     "is not an email address",
		"country":   "is not a country code such as US (ISO 3166-1 alpha-2)",
		"timezone":  "is not a time zone such as Europe/Berlin (IANA)",
		"locale":    "must be en or ar",
		"common":    "is too easy to guess",
		"role":      "must be owner, admin, member or viewer",
	}[i.Reason]
}

// NewUser is somebody to let in, and where. Country, Timezone and Locale are for an organization that does not
// exist yet; left out they are US, UTC and en.
type NewUser struct {
	Email, Name, Password     string
	Organization              string // name or id; an unknown name is made
	Role                      scope.Role
	Country, Timezone, Locale string
}

// CreatedUser says what CreateUser did.
type CreatedUser struct {
	Person                     Person
	Organization               Organization
	NewPerson, NewOrganization bool
	Role                       scope.Role
	PreviousRole               scope.Role // when the person was a member before
}

// CreateUser lets somebody into an organization. A known address keeps its password and gets another membership,
// or another role in an organization that it belongs to already.
func (a *Accounts) CreateUser(ctx context.Context, n NewUser) (CreatedUser, error) {
	n.Email, n.Organization, n.Name = normalizeEmail(n.Email), OneLine(n.Organization), OneLine(n.Name)
	if err := n.check(); err != nil {
		return CreatedUser{}, err
	}
	hash := ""
	if n.Password != "" {
		var err error
		if hash, err = a.passwords.hash(ctx, n.Password); err != nil {
			return CreatedUser{}, err
		}
	}
	var out CreatedUser
	err := a.Store.Tx(ctx, func(ctx context.Context) (err error) {
		out = CreatedUser{Role: n.Role}
		if out.Organization, out.NewOrganization, err = a.findOrCreateOrganization(ctx, n); err != nil {
			return err
		}
		if out.Person, out.NewPerson, err = a.findOrCreatePerson(ctx, n, hash); err != nil {
			return err
		}
		if out.PreviousRole, err = a.setRole(ctx, out.Person.ID, out.Organization.ID, n.Role); err != nil {
			return err
		}
		operator := caller.Caller{Org: out.Organization.ID}.AtCommandLine()
		return a.Audit.Append(caller.With(ctx, operator), audit.Record{
			Action: audit.UserCreate, Outcome: audit.OK, Subject: out.Person.ID, Detail: map[string]any{"role": string(n.Role)},
		})
	})
	return out, err
}

func (a *Accounts) findOrCreateOrganization(ctx context.Context, n NewUser) (Organization, bool, error) {
	o, err := a.FindOrganization(ctx, n.Organization)
	if err == nil {
		return o, false, nil
	}
	if !store.IsNotFound(err) {
		return Organization{}, false, err
	}
	o, err = a.createOrganization(ctx, organization{Name: n.Organization, HomeCountry: n.Country, Timezone: n.Timezone, Locale: n.Locale})
	return o, true, err
}

// FindOrganization finds an organization by its id or its name, in any case.
func (a *Accounts) FindOrganization(ctx context.Context, nameOrID string) (Organization, error) {
	var o organization
	err := a.Store.DB(ctx).Order("id").Take(&o, "id = ? OR lower(name) = lower(?)", nameOrID, nameOrID).Error
	if err != nil {
		return Organization{}, fmt.Errorf("finding the organization %q: %w", nameOrID, err)
	}
	return o.public(), nil
}

func (a *Accounts) createOrganization(ctx context.Context, o organization) (Organization, error) {
	o.ID, o.CreatedAt = store.NewID("org"), store.Now()
	if err := a.Store.DB(ctx).Create(&o).Error; err != nil {
		return Organization{}, fmt.Errorf("creating an organization: %w", err)
	}
	return o.public(), nil
}

func (a *Accounts) findOrCreatePerson(ctx context.Context, n NewUser, passwordHash string) (Person, bool, error) {
	p, err := a.FindPerson(ctx, n.Email)
	if err == nil {
		return p, false, nil
	}
	if !store.IsNotFound(err) {
		return Person{}, false, err
	}
	if passwordHash == "" {
		return Person{}, false, &Invalid{"password", "required"}
	}
	row := person{ID: store.NewID("per"), Email: n.Email, Name: n.Name, PasswordHash: passwordHash, CreatedAt: store.Now()}
	if err := a.Store.DB(ctx).Create(&row).Error; err != nil {
		return Person{}, false, fmt.Errorf("creating a person: %w", err)
	}
	return row.public(), true, nil
}

// FindPerson finds a person by address.
func (a *Accounts) FindPerson(ctx context.Context, email string) (Person, error) {
	var p person
	if err := a.Store.DB(ctx).Take(&p, "email = ?", normalizeEmail(email)).Error; err != nil {
		return Person{}, fmt.Errorf("finding a person: %w", err)
	}
	return p.public(), nil
}

// SetPassword gives a person another password and signs them out everywhere. It is the operator's way back in for
// somebody who forgot theirs; it answers an error for which store.IsNotFound holds for an unknown address.
func (a *Accounts) SetPassword(ctx context.Context, email, password string) (Person, error) {
	p, err := a.FindPerson(ctx, email)
	if err != nil {
		return Person{}, err
	}
	if err := checkPassword(password, p.Email); err != nil {
		return Person{}, err
	}
	hash, err := a.passwords.hash(ctx, password)
	if err != nil {
		return Person{}, err
	}
	memberships, err := a.Memberships(ctx, p.ID)
	if err != nil {
		return Person{}, err
	}
	return p, a.Store.Tx(ctx, func(ctx context.Context) error {
		if err := a.setPassword(ctx, p.ID, hash); err != nil {
			return err
		}
		for _, m := range memberships {
			operator := caller.Caller{Org: m.Organization.ID}.AtCommandLine()
			if err := a.Audit.Append(caller.With(ctx, operator), audit.Record{Action: audit.PasswordSet, Outcome: audit.OK, Subject: p.ID}); err != nil {
				return err
			}
		}
		return nil
	})
}

// setPassword replaces a hash; what was signed in with the old password is signed out.
func (a *Accounts) setPassword(ctx context.Context, personID, hash string) error {
	err := errors.Join(
		a.Store.DB(ctx).Model(&person{}).Where("id = ?", personID).Update("password_hash", hash).Error,
		a.Store.DB(ctx).Delete(&browserSession{}, "person_id = ?", personID).Error,
	)
	if err != nil {
		return fmt.Errorf("setting a password: %w", err)
	}
	return nil
}

// FirstOwner is the owner that an organization has had the longest.
func (a *Accounts) FirstOwner(ctx context.Context, orgID string) (Person, error) {
	var m membership
	if err := a.Store.DB(ctx).Order("created_at, person_id").Take(&m, "org_id = ? AND role = ?", orgID, scope.Owner).Error; err != nil {
		return Person{}, fmt.Errorf("finding the first owner: %w", err)
	}
	return a.Person(ctx, m.PersonID)
}

// Operator is a person acting from the command line in an organization.
func (a *Accounts) Operator(ctx context.Context, p Person, orgID string) (caller.Caller, error) {
	c, err := a.Member(ctx, p, orgID)
	return c.AtCommandLine(), err
}

// setRole makes a person a member with this role and returns the role they had, "" for a new member.
func (a *Accounts) setRole(ctx context.Context, personID, orgID string, role scope.Role) (scope.Role, error) {
	before, err := a.RoleOf(ctx, personID, orgID)
	switch {
	case errors.Is(err, ErrNoMember):
		m := membership{OrgID: orgID, PersonID: personID, Role: role, CreatedAt: store.Now()}
		err = a.Store.DB(ctx).Create(&m).Error
	case err == nil && before != role:
		if before == scope.Owner {
			if err := a.notLastOwner(ctx, orgID); err != nil {
				return "", err
			}
		}
		err = a.Store.DB(ctx).Model(&membership{}).Where("org_id = ? AND person_id = ?", orgID, personID).Update("role", role).Error
	}
	if err != nil {
		return "", fmt.Errorf("setting a role: %w", err)
	}
	return before, nil
}

// ErrLastOwner refuses to leave an organization without an owner, which would open the set-up again.
var ErrLastOwner = errors.New("this is the only owner of the organization: make somebody else an owner first")

func (a *Accounts) notLastOwner(ctx context.Context, orgID string) error {
	var n int64
	if err := a.Store.DB(ctx).Model(&membership{}).Where("org_id = ? AND role = ?", orgID, scope.Owner).Count(&n).Error; err != nil {
		return fmt.Errorf("counting owners: %w", err)
	}
	if n < 2 {
		return ErrLastOwner
	}
	return nil
}

func (n *NewUser) check() error {
	for _, field := range []struct {
		value     *string
		otherwise string
	}{{&n.Country, "US"}, {&n.Timezone, "UTC"}, {&n.Locale, "en"}} {
		if *field.value == "" {
			*field.value = field.otherwise
		}
	}
	if _, ok := scope.ParseRole(string(n.Role)); !ok {
		return &Invalid{"role", "role"}
	}
	if n.Password != "" {
		if err := checkPassword(n.Password, n.Email); err != nil {
			return err
		}
	}
	return firstInvalid(
		checkText("org", n.Organization, 120), checkEmail(n.Email), checkName(n.Name),
		checkCountry(n.Country), checkTimezone(n.Timezone), checkLocale(n.Locale),
	)
}

func firstInvalid(checks ...*Invalid) error {
	for _, c := range checks {
		if c != nil {
			return c
		}
	}
	return nil
}

func checkText(field, value string, most int) *Invalid {
	switch {
	case strings.TrimSpace(value) == "":
		return &Invalid{field, "required"}
	case utf8.RuneCountInString(value) > most || !utf8.ValidString(value):
		return &Invalid{field, "too_long"}
	}
	return nil
}

func checkName(name string) *Invalid {
	if name == "" {
		return nil // the address stands in for it
	}
	return checkText("name", name, 120)
}

// maxEmail is the longest address that mail can be sent to (RFC 5321 §4.5.3.1.3).
const maxEmail = 254

func checkEmail(email string) *Invalid {
	if email == "" {
		return &Invalid{"email", "required"}
	}
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || len(email) > maxEmail || !strings.Contains(email, "@") ||
		strings.ContainsFunc(email, func(c rune) bool { return !unicode.IsGraphic(c) }) { // net/mail lets controls beyond ASCII pass
		return &Invalid{"email", "email"}
	}
	return nil
}

func checkPassword(password, email string) error {
	switch {
	case password == "":
		return &Invalid{"password", "required"}
	case utf8.RuneCountInString(password) < MinPassword:
		return &Invalid{"password", "too_short"}
	case len(password) > MaxPassword:
		return &Invalid{"password", "too_long"}
	case strings.EqualFold(password, email) || strings.Trim(password, string([]rune(password)[:1])) == "":
		return &Invalid{"password", "common"}
	}
	return nil
}

func normalizeEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// OneLine is a name that people of an organization give, without white space around it and without what Postgres (NUL)
// or a terminal would choke on, breaks the line, or turns the direction of what stands around it. Joiners stay: Arabic
// and Persian names need them.
func OneLine(name string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.In(c, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || c == utf8.RuneError {
			return -1
		}
		return c
	}, name))
}
