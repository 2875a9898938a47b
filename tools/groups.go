package tools

import "switchboard/internal/scope"

// Groups is the permissions as a person reads them on the consent screen, in that order. Groups whose tools do not
// exist yet are here too: scope.Catalog leaves them out until then.
func Groups() []scope.Group {
	on := func(name string, scopes ...string) scope.Group {
		return scope.Group{Name: name, Scopes: scope.Of(scopes...), Default: true}
	}
	off := func(name string, scopes ...string) scope.Group {
		return scope.Group{Name: name, Scopes: scope.Of(scopes...)}
	}
	return []scope.Group{
		on("agents", "agents:read", "agents:write", "voices:read"),
		on("calls", "calls:read", "calls:write"),
		on("contacts", "contacts:read", "contacts:write"),
		on("numbers", "numbers:read", "numbers:write"),
		on("campaigns", "campaigns:read", "campaigns:write"),
		on("billing", "usage:read", "billing:read"),
		on("integrations", "integrations:read"),
		off("webhooks", "webhooks:read", "webhooks:write"),
		on("organization", "org:read", "org:write"),
		on("mail", "mail:read", "mail:write"),
		off("send mail", "mail:send"),
		on("webhook inboxes", "hooks:read", "hooks:write"),
		on("sms", "sms:read"),
		on("mocks", "mocks:read", "mocks:write", "mocks:call"),
		on("files", "files:read", "files:write"),
		on("memory", "memory:read", "memory:write"),
		on("monitors", "monitors:read", "monitors:write", "jobs:read", "jobs:write", "status:read", "status:write"),
		on("approvals", "approvals:ask", "approvals:read"),
		off("authenticators", "authenticators:read", "authenticators:write", "authenticators:use"),
		on("utilities", "tools:run", "tools:net"),
		on("workspace", "workspace:read"),
		off("apps", "apps:read", "apps:write", "env:write", "domains:write"),
		off("delete apps", "apps:delete"),
		off("platform", "platform:read"),
	}
}

// Umbrellas is the scopes that stand for others. They are accepted where scopes come in and expanded there.
func Umbrellas() map[string]scope.Set {
	return map[string]scope.Set{
		"resources:read": scope.Of("hooks:read", "mail:read", "mocks:read", "files:read", "monitors:read", "authenticators:read",
			"memory:read", "approvals:read", "jobs:read", "status:read", "sms:read"),
		"resources:write": scope.Of("resources:read", "hooks:write", "mail:write", "mocks:write", "mocks:call", "files:write",
			"monitors:write", "authenticators:write", "authenticators:use", "memory:write", "approvals:ask", "jobs:write", "status:write"),
		"spocket": scope.Of("apps:read", "apps:write", "env:write", "domains:write"),
	}
}
