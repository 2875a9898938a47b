package org

import "switchboard/tools/kit"

// Area is what this package adds to the product.
func (s *Service) Area() kit.Area {
	return kit.Area{Name: "org", Tools: []kit.Tool{
		kit.New(kit.Spec{
			Name: "get_started", Title: "Where am I?", Scope: "org:read",
			Doc: "Call this first in a conversation: it tells how far the organization is set up and what to do next. " +
				"Returns { organization, plan, balance, agents, numbers, integrations, recentCalls, onboarding, nextSteps, guidedAgentBuilderUrl }; " +
				"each of nextSteps is { step, why, tool, dashboardUrl }, in the order in which they are best done, with the tool to call and, where there is one, the page to open.",
			Example: `{}`,
		}, s.Started),

		kit.New(kit.Spec{
			Name: "get_organization", Title: "Get organization settings", Scope: "org:read",
			Doc: "Read the organization's settings. Returns { id, name, logoUrl, locale, status, planId, homeCountry, concurrencyLimit, outbound }; " +
				"outbound is { allowedCountries, defaultCountries, window, timezone, consentText, acknowledged }. logoUrl is null when there is no logo; " +
				"where allowedCountries is empty, defaultCountries apply; acknowledged says whether a person has taken responsibility for do-not-call law.",
			Example: `{}`,
		}, s.Settings),

		kit.New(kit.Spec{
			Name: "update_outbound_settings", Title: "Update outbound calling rules", Scope: "org:write",
			Effect: kit.Write, Idempotent: true,
			Doc: "Change which countries outbound calls may reach, the default calling hours, the organization's time zone and the consent text. " +
				"Arguments that you leave out stay as they are; without any, nothing changes. A calling window lies within one day: end is later than start. " +
				"The legal acknowledgement (do-not-call and TCPA) is not given here: a person ticks it in the browser. " +
				"Returns the outbound settings after the change: { allowedCountries, defaultCountries, window, timezone, consentText, acknowledged }.",
			Example: `{"allowedCountries":["AE","SA","US"],"window":{"start":"09:00","end":"20:00","days":[0,1,2,3,4]},"timezone":"Asia/Dubai"}`,
		}, s.UpdateOutbound),
	}}
}
