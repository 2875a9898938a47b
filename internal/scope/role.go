package scope

import "slices"

// Role is what a person is in one organization. What a connection or key may do is its scopes ∩ the role of the
// person behind it, judged on every call, so that taking a role away works at once.
type Role string

const (
	Viewer Role = "viewer" // looks at everything but money and recordings
	Member Role = "member" // viewer, and works with agents, calls, contacts, campaigns and the test kit
	Admin  Role = "admin"  // member, and buys, configures, sees and revokes everybody's connections and keys
	Owner  Role = "owner"  // admin; differs from it once members and policies can be managed
)

// Roles in rising order.
var roles = []Role{Viewer, Member, Admin, Owner}

// Roles lists every role, the weakest first.
func Roles() []Role { return slices.Clone(roles) }

// ParseRole reads a role as a person types it.
func ParseRole(s string) (Role, bool) {
	r := Role(s)
	return r, slices.Contains(roles, r)
}

// AtLeast reports whether r can do all that other can.
func (r Role) AtLeast(other Role) bool {
	i := slices.Index(roles, r)
	return i >= 0 && i >= slices.Index(roles, other)
}

// SeesAll reports whether the role sees, and may revoke, what belongs to others in the organization: every connection
// and key, and the audit log.
func (r Role) SeesAll() bool { return r.AtLeast(Admin) }

// needs names the scopes that a viewer does not have and the least role that has them. A scope that is neither
// here nor a ":read" belongs to nobody: a new scope fails closed until it is given a line.
var needs = map[string]Role{
	"agents:write": Member, "calls:write": Member, "contacts:write": Member, "campaigns:write": Member,
	"mail:write": Member, "hooks:write": Member, "mocks:write": Member, "mocks:call": Member, "files:write": Member,
	"memory:write": Member, "monitors:write": Member, "jobs:write": Member, "status:write": Member,
	"approvals:ask": Member, "authenticators:write": Member, "tools:run": Member, "tools:net": Member,

	"billing:read": Admin, "numbers:write": Admin, "webhooks:write": Admin, "org:write": Admin, "mail:send": Admin,
	"authenticators:use": Admin, "apps:write": Admin, "apps:delete": Admin, "env:write": Admin, "domains:write": Admin,
}

// LeastRole is the weakest role that may use a scope, and false for a scope that no role has.
func LeastRole(scope string) (Role, bool) {
	if r, ok := needs[scope]; ok {
		return r, true
	}
	return Viewer, IsRead(scope)
}

// Allows reports whether the role may use a scope. An unknown role or scope is refused.
func (r Role) Allows(scope string) bool {
	least, ok := LeastRole(scope)
	return ok && r.AtLeast(least)
}
