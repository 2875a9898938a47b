package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/ory/fosite"
	"gorm.io/gorm/clause"

	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/fault"
	"switchboard/internal/scope"
	"switchboard/internal/store"
)

// ErrGone is the answer about a consent request that is unknown, too old, answered and used, or another browser's.
var ErrGone = errors.New("this request is not waiting for an answer")

// consentRequest is what a client asked and a person has not answered yet, or has. Neither its id nor the browser
// it belongs to is stored in clear.
type consentRequest struct {
	IDHash      string `gorm:"primaryKey"`
	BrowserHash string
	ClientID    string
	Query       string
	Decision    *string
	GrantID     *string
	CreatedAt   store.Time
	ExpiresAt   store.Time
}

func (consentRequest) TableName() string { return "consent_requests" }

// The decisions of a consent request.
const (
	approved = "approved"
	denied   = "denied"
)

// Pending is a consent request as a person has to see it.
type Pending struct {
	ID                        string
	ClientID, ClientName      string
	RedirectURI, RedirectHost string
	ClientHost                string   // where the document of the client is, which its id is the address of; "" without one
	OnlyOrg                   string   // the organization whose administrator made the client, "" for any
	BlockedIn                 []string // organizations that do not let the client in
	Loopback                  bool     // answers at a port of the person's own machine
	PrivateScheme             string   // answers at an app that owns this scheme
	Resource                  string
	Requested                 scope.Set
	ExpiresAt                 time.Time
	Decision                  string // "" while open
}

// Admits reports whether an organization lets the client in.
func (p Pending) Admits(org string) bool { return letsIn(org, p.OnlyOrg, p.BlockedIn) }

// Pending reads a consent request for the browser that began it. The error is ErrGone, or the *RedirectError that waited
// under this id for a sign-in.
func (s *Server) Pending(ctx context.Context, requestID, browser string) (Pending, error) {
	row, a, err := s.load(ctx, requestID, browser)
	if err != nil {
		return Pending{}, err
	}
	p := Pending{
		ID: requestID, ClientID: a.client.row.ID, ClientName: a.client.row.Name, RedirectURI: a.redirectURI,
		Resource: a.resource, Requested: a.scopes, ExpiresAt: row.ExpiresAt.Time,
	}
	if row.Decision != nil {
		p.Decision = *row.Decision
	}
	p.OnlyOrg, p.ClientHost = a.client.row.organization(), auth.DocumentHost(a.client.row.ID)
	if p.BlockedIn, err = s.blockedIn(ctx, p.ClientID); err != nil {
		return Pending{}, err
	}
	p.RedirectHost = auth.RedirectHost(a.redirectURI)
	if u, err := url.Parse(a.redirectURI); err == nil {
		p.Loopback = isLoopback(u)
		if u.Scheme != "https" && u.Scheme != "http" {
			p.PrivateScheme = u.Scheme
		}
	}
	return p, nil
}

// load reads a consent request and checks what it asks again: its client may be gone, or a scope.
func (s *Server) load(ctx context.Context, requestID, browser string) (*consentRequest, *authorization, error) {
	var row consentRequest
	err := s.Store.DB(ctx).Take(&row, "id_hash IN ? AND browser_hash IN ? AND expires_at > ?", s.Secrets.Hashes(requestID), s.Secrets.Hashes(browser), store.Now()).Error
	if store.IsNotFound(err) {
		return nil, nil, ErrGone
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading a consent request: %w", err)
	}
	form, err := url.ParseQuery(row.Query)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a consent request: %w", err)
	}
	c, err := s.find(ctx, row.ClientID)
	if err != nil && !errors.Is(err, fosite.ErrNotFound) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, ErrGone
	}
	if form.Has("error") {
		return nil, nil, s.waited(c, form)
	}
	a, err := s.check(ctx, c, form)
	var page *PageError
	if errors.As(err, &page) && page.Reason == "unavailable" {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, ErrGone
	}
	return &row, a, nil
}

// waited is the error that Wait has kept, as long as the client still has the redirect URI.
func (s *Server) waited(c *client, form url.Values) error {
	a := &authorization{client: c, redirectURI: form.Get("redirect_uri"), state: form.Get("state")}
	if !matchesAny(c.redirects, a.redirectURI) {
		return ErrGone
	}
	return s.back(a, &fosite.RFC6749Error{ErrorField: form.Get("error"), DescriptionField: form.Get("error_description")}, ErrGone)
}

// Held is what the person's connection of this client in an organization may do already, and since when; empty when
// there is none. Then a request is a step-up.
func (s *Server) Held(ctx context.Context, p Pending, personID, orgID string) (scope.Set, time.Time, error) {
	var grants []struct {
		Scope     string
		CreatedAt store.Time
	}
	// Joined by hand, so the fence does not see it: the person and the organization are conditions of the query.
	err := s.Store.DB(store.AllOrgs(ctx, "the organization is a condition")).Table("grants").
		Select("grants.scope, grants.created_at").Joins("JOIN connections c ON c.id = grants.connection_id").
		Where("c.person_id = ? AND c.org_id = ? AND c.client_id = ? AND c.revoked_at IS NULL", personID, orgID, p.ClientID).
		Where("grants.revoked_at IS NULL AND grants.expires_at > ? AND grants.resource = ?", store.Now(), p.Resource).
		Where("EXISTS (SELECT 1 FROM generations g WHERE g.grant_id = grants.id)").
		Order("grants.created_at").Find(&grants).Error
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading what a connection holds: %w", err)
	}
	held, since := scope.Set{}, time.Time{}
	for i, g := range grants {
		held = held.Union(scope.Parse(g.Scope))
		if i == 0 {
			since = g.CreatedAt.Time
		}
	}
	return held, since, nil
}

// Decision is a person's answer. Scopes are those of the ticked boxes.
type Decision struct {
	Approve         bool
	PersonID, OrgID string
	Scopes          scope.Set
	ReadOnly        bool // only what reads, of what is ticked
}

// Decide records a person's answer and returns where to send the browser: to the client with a code, or with
// access_denied when the answer is no or nothing is left of what was ticked, asked for, and allowed to the role.
// The first answer counts; the same form again gets the same location while its code is unused, and then ErrGone. A
// "no" after a "yes" takes the yes back as long as its code is unused.
func (s *Server) Decide(ctx context.Context, requestID, browser string, d Decision) (string, error) {
	var out string
	err := s.Store.Tx(ctx, func(ctx context.Context) error {
		row, a, err := s.load(ctx, requestID, browser)
		if err != nil {
			return err
		}
		if row.Decision == nil {
			who, err := s.member(ctx, d)
			if err != nil {
				return err
			}
			out, err = s.decide(ctx, requestID, row, a, who, d)
			if err != nil || out != "" {
				return err
			}
			// Another answer came in between.
			if row, a, err = s.load(ctx, requestID, browser); err != nil {
				return err
			}
		}
		out, err = s.repeat(ctx, requestID, row, a, d)
		return err
	})
	if back := (*RedirectError)(nil); errors.As(err, &back) {
		return "", ErrGone // no page has asked for an answer to it
	}
	return out, err
}

// member is the person who answers, as a member of the organization that they picked; a zero Caller when they are
// none, who can then allow nothing.
func (s *Server) member(ctx context.Context, d Decision) (caller.Caller, error) {
	p, err := s.Accounts.Person(ctx, d.PersonID)
	if err != nil {
		return caller.Caller{}, err
	}
	c, err := s.Accounts.Member(ctx, p, d.OrgID)
	if errors.Is(err, accounts.ErrNoMember) {
		return caller.Caller{}, nil
	}
	return c.InBrowser(""), err
}

// admitted reports whether an organization lets a client in. It holds the client's row, so that a block that comes at
// this moment either is seen here or ends the connection that is made here.
func (s *Server) admitted(ctx context.Context, c *client, org string) (bool, error) {
	var row clientRow
	if err := s.Store.Locked(ctx).Select("id").Take(&row, "id = ?", c.row.ID).Error; err != nil {
		return false, fmt.Errorf("reading a client: %w", err)
	}
	blocked, err := s.blockedIn(ctx, c.row.ID)
	return letsIn(org, c.row.organization(), blocked), err
}

// decide takes the request and does what was decided. It returns "" when somebody else took it first.
func (s *Server) decide(ctx context.Context, requestID string, row *consentRequest, a *authorization, who caller.Caller, d Decision) (string, error) {
	granted := s.Scopes.Expand(d.Scopes).Intersect(a.scopes).Filter(who.Role.Allows)
	if d.ReadOnly {
		granted = granted.ReadOnly()
	}
	admitted, err := s.admitted(ctx, a.client, who.Org)
	if err != nil {
		return "", err
	}
	grantID, decision := store.NewID("gra"), approved
	if !d.Approve || len(granted) == 0 || !admitted {
		decision = denied
	}
	taken := s.Store.DB(ctx).Model(&consentRequest{}).Where("id_hash = ? AND decision IS NULL", row.IDHash).
		Updates(map[string]any{"decision": decision, "grant_id": grantID})
	if taken.Error != nil {
		return "", fmt.Errorf("recording a decision: %w", taken.Error)
	}
	if taken.RowsAffected == 0 {
		return "", nil
	}
	if decision == denied {
		location := s.deny(a)
		if d.Approve && !admitted {
			location = s.errorLocation(a, fosite.ErrAccessDenied.WithHint("The organization does not let this client in. Its administrators can change that."))
		}
		return location, s.auditConsent(ctx, who, a, audit.Record{Outcome: audit.Refused, Code: fault.Forbidden}, nil)
	}
	connectionID, err := s.grant(ctx, grantID, a, who, granted)
	if err != nil {
		return "", err
	}
	location, err := s.issueCode(ctx, a, &decided{requestID: requestID, grantID: grantID})
	if err != nil {
		return "", err
	}
	return location, s.auditConsent(ctx, who, a, audit.Record{Outcome: audit.OK, Subject: connectionID}, granted)
}

func (s *Server) auditConsent(ctx context.Context, who caller.Caller, a *authorization, r audit.Record, granted scope.Set) error {
	if who.Org == "" {
		return nil // nobody's organization
	}
	r.Action = audit.Consent
	r.Detail = map[string]any{"app": a.client.row.Name, "scopes": granted.String()}
	return s.Audit.Append(caller.With(ctx, who), r)
}

func (s *Server) deny(a *authorization) string {
	return s.errorLocation(a, fosite.ErrAccessDenied.WithHint("The person did not allow it."))
}

// grant makes a grant under the live connection of person, organization and client, which it makes if there is none.
func (s *Server) grant(ctx context.Context, grantID string, a *authorization, who caller.Caller, granted scope.Set) (connectionID string, err error) {
	now := store.Now()
	fresh := map[string]any{"id": store.NewID("con"), "org_id": who.Org, "person_id": who.Person, "client_id": a.client.row.ID, "created_at": now}
	open := s.Store.DB(store.AllOrgs(ctx, "the organization is in the row"))
	if err := open.Table("connections").Clauses(clause.OnConflict{DoNothing: true}).Create(fresh).Error; err != nil {
		return "", fmt.Errorf("creating a connection: %w", err)
	}
	err = s.Store.QueryRow(ctx, `SELECT id FROM connections WHERE org_id = ? AND person_id = ? AND client_id = ? AND revoked_at IS NULL`,
		[]any{who.Org, who.Person, a.client.row.ID}, &connectionID)
	if err != nil {
		return "", fmt.Errorf("reading a connection: %w", err)
	}
	_, err = s.Store.Exec(ctx, `INSERT INTO grants (id, connection_id, scope, resource, redirect_uri, auth_method, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		grantID, connectionID, granted.String(), a.resource, a.redirectURI, a.client.row.AuthMethod, now, now.Add(grantFactor*s.Refresh))
	if err != nil {
		return "", fmt.Errorf("creating a grant: %w", err)
	}
	return connectionID, nil
}

// issueCode has fosite run the code grant, see code.go, and writes its answer.
func (s *Server) issueCode(ctx context.Context, a *authorization, d *decided) (string, error) {
	ar, err := s.parse(ctx, a)
	if err != nil {
		return "", err
	}
	ar.GrantAudience(a.resource)
	resp, err := s.provider.NewAuthorizeResponse(ctx, ar, &session{decided: d})
	if err != nil {
		return "", err
	}
	return s.answer(a, url.Values{"code": {resp.GetCode()}}), nil
}

// repeat answers a form that was posted again, the way it was answered the first time. Only the person who said yes
// gets the code again, and nobody gets one for a no.
func (s *Server) repeat(ctx context.Context, requestID string, row *consentRequest, a *authorization, d Decision) (string, error) {
	if row.Decision == nil || row.GrantID == nil {
		return "", ErrGone
	}
	if *row.Decision == denied {
		return s.deny(a), nil
	}
	code, c, err := s.issuedCode(ctx, requestID, *row.GrantID)
	if store.IsNotFound(err) || err == nil && (c.g.personID != d.PersonID || c.g.dead() || !c.usedAt.IsZero() || !time.Now().Before(c.expiresAt.Time)) {
		return "", ErrGone
	}
	if err != nil {
		return "", err
	}
	if d.Approve {
		return s.answer(a, url.Values{"code": {code}}), nil
	}
	return s.takeBack(ctx, row, a, c)
}

// issuedCode derives the code of an approved request anew; the key that it was made with may not be the current one.
func (s *Server) issuedCode(ctx context.Context, requestID, grantID string) (code string, c codeRow, err error) {
	for _, keyID := range s.Secrets.IDs() {
		code, _ = s.code(keyID, requestID, grantID)
		if c, err = s.findCode(ctx, code); !store.IsNotFound(err) {
			break
		}
	}
	return code, c, err
}

// takeBack revokes what was allowed and not yet used, and answers no.
func (s *Server) takeBack(ctx context.Context, row *consentRequest, a *authorization, c codeRow) (string, error) {
	used, err := s.Store.Exec(ctx, `UPDATE codes SET used_at = ? WHERE code_hash = ? AND used_at IS NULL`, store.Now(), c.hash)
	if err == nil && used == 0 {
		return "", ErrGone // exchanged at this moment
	}
	if err == nil {
		_, err = s.revokeGrantRow(ctx, c.grantID)
	}
	if err == nil {
		err = s.Store.DB(ctx).Model(&consentRequest{}).Where("id_hash = ?", row.IDHash).Update("decision", denied).Error
	}
	if err != nil {
		return "", fmt.Errorf("taking a consent back: %w", err)
	}
	who := c.g.caller().InBrowser("")
	return s.deny(a), s.auditConsent(ctx, who, a, audit.Record{Outcome: audit.Refused, Code: fault.Forbidden, Subject: c.g.connectionID}, nil)
}
