package mutants

import "slices"

// bugs are the planted ones, each where a promise of docs/security.md is most precious.
func bugs() []bug {
	return slices.Concat(codesAndTokens(), whoMayDoWhat(), appsAndPages())
}

func one(file, before, after string) []edit { return []edit{{file, before, after}} }

// codesAndTokens are bugs of the issuer.
func codesAndTokens() []bug {
	const in = "auth/oauth"
	return []bug{
		{"a code is used up without looking whether it was used", one("auth/oauth/code.go",
			"`UPDATE codes SET used_at = ? WHERE code_hash = ? AND used_at IS NULL`", "`UPDATE codes SET used_at = ? WHERE code_hash = ?`"),
			in, "TestACodeThatTwoHoldAtTheSameMomentGivesTokensOnce"},
		{"a redirect URI is compared after decoding its path", one("auth/oauth/redirect.go", `u.EscapedPath(); p != ""`, `u.Path; p != ""`),
			in, "TestARedirectURIMatchesWhatWasRegisteredAndLoopbackPortsAreFree"},
		{"a redirect URI is compared after decoding all of it", []edit{
			{"auth/oauth/redirect.go", "if registered == requested {", "if decoded, _ := url.PathUnescape(requested); registered == decoded {"}},
			in, "TestARedirectURIMatchesWhatWasRegisteredAndLoopbackPortsAreFree"},
		{"a redirect URI is compared by its beginning", []edit{
			{"auth/oauth/redirect.go", "if registered == requested {", "if strings.HasPrefix(requested, registered) {"}},
			in, "TestARedirectURIMatchesWhatWasRegisteredAndLoopbackPortsAreFree"},
		{"an error goes to the app without the issuer", one("auth/oauth/authorize.go",
			`return s.answer(a, url.Values{"error": {e.ErrorField}, "error_description": {describe(e)}})`,
			`return location(a.redirectURI, url.Values{"error": {e.ErrorField}, "error_description": {describe(e)}, "state": {a.state}})`),
			in, "TestAnErrorGoesBackToATrustedRedirect"},
		{"PKCE takes plain", one("auth/oauth/authorize.go",
			`case form.Get("code_challenge_method") != "S256":`, `case form.Get("code_challenge_method") != "S256" && form.Get("code_challenge_method") != "plain":`),
			in, "TestAnErrorGoesBackToATrustedRedirect"},
		{"PKCE is for those who want it", one("auth/oauth/code.go", `verifies(c.challenge, verifier)`, `(verifier != "" || verifies(c.challenge, verifier))`),
			in, "TestOneGuessOfTheVerifierForEachCode"},
		{"a code is good for any app that has its verifier", []edit{
			{"auth/oauth/code.go", "theirs := c.clientID == r.GetClient().GetID()", "theirs := true"}},
			in, "TestAnExchangeThatIsRefusedForItsFormDoesNotUseTheCode"},
		{"a second use of a code revokes nothing", one("auth/oauth/code.go", "if right && time.Since(c.usedAt.Time) < harmlessReplay ||", "if right || !right ||"),
			in, "TestASecondUseOfACodeRevokesItsGrantUnlessItIsAnEcho"},
		{"a code never ends", one("auth/oauth/code.go", "case !time.Now().Before(c.expiresAt.Time):", "case false:"),
			in, "TestACodeEndsAfterAMinute"},
		{"somebody else's code has an answer of its own", one("auth/oauth/code.go", "	case !theirs:\n		return strangeCode\n", "	case !theirs:\n		return fosite.ErrInvalidGrant.WithHint(\"It is another client's.\")\n"),
			in, "TestNobodyLearnsWhetherSomebodyElsesCodeOrTokenExists"},
		{"a refresh token that comes back revokes nothing", one("auth/oauth/refresh.go", "return nil, g.reused(ctx, p)", "return nil, strangeToken"),
			in, "TestReuseRevokesTheWholeConnectionButNoOtherOne"},
		{"a blocked app is let in", one("auth/oauth/clientblocks.go", "(only == \"\" || only == org) && !slices.Contains(blockedIn, org)", "(only == \"\" || only == org) && !slices.Contains(blockedIn, \"\")"),
			in, "TestABlockedAppIsDeadAtOnceAndAsksInVain"},
		{"an app of one organization is let in everywhere", one("auth/oauth/clientblocks.go", "(only == \"\" || only == org) && ", ""),
			in, "TestAnAppThatAnAdministratorMakesSignsInPeopleOfTheirOrganizationOnly"},
		{"a refresh token is good for any app", one("auth/oauth/refresh.go", "case p.g.clientID != r.GetClient().GetID():", "case false:"),
			in, "TestAStrangersRefreshRevokesNothing"},
		{"a refresh token is repeated although its successor was used", one("auth/oauth/refresh.go", " && p.nextUsed.IsZero()", ""),
			in, "TestAGrandparentIsTheftInsideTheWindowOnceItsSuccessorWasUsed"},
		{"a refresh may widen", one("auth/oauth/refresh.go", "if !all.Contains(want) {", "if false {"),
			in, "TestARefreshThatIsRefusedDoesNotUseTheToken"},
		{"a token request for another resource is let through", one("auth/oauth/grants.go", `if v != "" && canonical(v) != granted {`, `if v != "" && canonical(v) == "" {`),
			in, "TestAnExchangeThatIsRefusedForItsFormDoesNotUseTheCode"},
		{"the last of two parameters counts", one("auth/oauth/token.go", "if len(values) > 1 ", "if len(values) > 2 "),
			in, "TestTheTokenEndpointSaysWhatIsWrongInTheWordsClientsActOn"},
		{"an app with a secret may leave it out", []edit{
			{"auth/oauth/authenticate.go", "if said.secret == \"\" {", "if false {"},
			{"auth/oauth/authenticate.go", "if !s.isSecret(&c.row, said.secret) {", "if said.secret != \"\" && !s.isSecret(&c.row, said.secret) {"}},
			in, "TestASecretIsGoodInTheHeaderAndInTheFormAndNothingElseIs"},
		{"an assertion is good twice", one("auth/oauth/authenticate.go", "if n == 0 {", "if n < 0 {"),
			in, "TestAnAssertionIsTheClientsAboutItselfForUsNowAndOnce"},
		{"every app with a secret may introspect", one("auth/oauth/introspect.go", "if who.row.ID == g.clientID {", "if who.proven {"),
			in, "TestATokenIsTheBusinessOfItsClientAndOfItsOrganizationsOwnApps"},
		{"an app without a secret may introspect", one("auth/oauth/introspect.go", "!who.(*client).proven", "false"),
			in, "TestATokenIsTheBusinessOfItsClientAndOfItsOrganizationsOwnApps"},
		{"anybody may revoke a token", one("auth/oauth/revoke.go", "case f.g.clientID != c.GetID() || f.g.dead():", "case f.g.dead():"),
			in, "TestRevocationAnswers200AndEndsWhatBelongsToTheClient"},
		{"what is granted was not asked for", one("auth/oauth/consent.go", "s.Scopes.Expand(d.Scopes).Intersect(a.scopes).Filter(", "s.Scopes.Expand(d.Scopes).Filter("),
			in, "TestWhatIsGrantedIsPostedAndAskedForAndAllowedToTheRole"},
		{"any browser may answer a consent request", one("auth/oauth/consent.go",
			`"id_hash IN ? AND browser_hash IN ? AND expires_at > ?", s.Secrets.Hashes(requestID), s.Secrets.Hashes(browser), store.Now()`,
			`"id_hash IN ? AND expires_at > ?", s.Secrets.Hashes(requestID), store.Now()`),
			in, "TestOnlyTheBrowserThatBeganMayAnswer"},
		{"the issuer of an answer has a slash at its end", one("auth/oauth/authorize.go", `params.Set("iss", s.Issuer)`, `params.Set("iss", s.Issuer+"/")`),
			in, "TestAnErrorGoesBackToATrustedRedirect"},
		{"an error comes back without the state", one("auth/oauth/authorize.go", `if a.state != "" {`, `if a.state != "" && !params.Has("error") {`),
			in, "TestStateComesBackUnchangedOnSuccessAndOnErrors"},
		{"any response_mode is taken", one("auth/oauth/authorize.go", `form.Get("response_mode") != "query"`, `form.Get("response_mode") == "none"`),
			in, "TestAnErrorGoesBackToATrustedRedirect"},
		{"prompt=none is let through", one("auth/oauth/authorize.go", "return fosite.ErrInteractionRequired.", "break\n		return fosite.ErrInteractionRequired."),
			in, "TestAnErrorGoesBackToATrustedRedirect"},
		{"one of two challenges counts", one("auth/oauth/authorize.go", `if len(values) > 1 && key != "resource" {`, `if len(values) > 2 && key != "resource" {`),
			in, "TestAnErrorGoesBackToATrustedRedirect"},
		{"one of two redirects counts", one("auth/oauth/authorize.go", "if len(form[key]) > 1 {", "if len(form[key]) > 2 {"),
			in, "TestARequestWhoseRedirectCannotBeTrustedIsAPage"},
		{"an unused refresh token never ends", one("auth/oauth/refresh.go", "case p.usedAt.IsZero() && !time.Now().Before(p.refreshExpires.Time):", "case p.usedAt.IsZero() && time.Now().IsZero():"),
			in, "TestAnUnusedRefreshTokenEndsAndAUsedOneLivesOn"},
		{"a grant never ends", one("auth/oauth/oauth.go", "const grantFactor = 6", "const grantFactor = 600"),
			in, "TestAGrantEndsHoweverOftenItIsRefreshed"},
		{"registrations are not counted", one("auth/oauth/oauth.go", "registrationsPerMinute = 60", "registrationsPerMinute = 0"),
			in, "TestABurstOfRegistrationsPassesAndAFloodIsTold"},
		{"a host that the operator denies may publish", one("auth/oauth/cimd.go", "return !on(p.Deny) && (", "return (on(p.Deny) || true) && ("),
			in, "TestTheOperatorSaysWhichHostsMayPublish"},
		{"what another app holds counts as its own", one("auth/oauth/consent.go", `AND c.client_id = ? AND c.revoked_at IS NULL", personID, orgID, p.ClientID)`, `AND c.revoked_at IS NULL", personID, orgID)`),
			in, "TestAnotherRegistrationOfTheSameNameInheritsNothing"},
		{"what the role does not allow is granted", one("auth/oauth/consent.go", "Intersect(a.scopes).Filter(who.Role.Allows)", "Intersect(a.scopes)"),
			in, "TestWhatIsGrantedIsPostedAndAskedForAndAllowedToTheRole"},
		{"the resource offers the whole catalogue", one("auth/oauth/metadata.go", "ScopesSupported: r.Scopes.Default()", "ScopesSupported: r.Scopes.Known()"),
			in, "TestMetadataIsWhereClientsLookAndAJSON404IsElsewhere"},
		{"a registration takes any scheme", one("auth/oauth/redirect.go", "case refused(u.Scheme):", "case false:"),
			in, "TestARegistrationThatCannotBeServedIsRefused"},
		{"a document may name another id than its address", one("auth/oauth/cimd.go", `&own) != nil || own != id {`, `&own) != nil {`),
			in, "TestABadDocumentIsAPageWithinSecondsAndNothingIsKept"},
	}
}

// whoMayDoWhat are bugs of the bearer check, of the gate, and of the fence between organizations.
func whoMayDoWhat() []bug {
	return []bug{
		{"the gate judges the tool of the header and runs that of the body", one("mcp/gate.go", "res, err = next(ctx, method, req)",
			`if call, ok := req.(*sdk.CallToolRequest); ok && call.Extra != nil {
			named, _ := h.tools.Tool(call.Extra.Header.Get("Mcp-Name"))
			runs, _ := h.tools.Tool(call.Params.Name)
			if c, _ := caller.From(ctx); kit.Allowed(c, named.Spec()) == nil {
				c.Scopes = c.Scopes.Union(runs.Needs())
				ctx = caller.With(ctx, c)
			}
		}
		res, err = next(ctx, method, req)`),
			"mcp", "TestAToolOutsideTheScopesNeverRuns"},
		{"a batch is let through", one("mcp/front.go", "case message[0] == '[':", "case false:"),
			"mcp", "TestTranscripts"},
		{"an audience that begins like the resource is good", []edit{
			{"auth/resource.go", `import "switchboard/internal/scope"`, `import ("strings"; "switchboard/internal/scope")`},
			{"auth/resource.go", "(audience == r.URL || audience == r.Whole)", "(strings.HasPrefix(audience, r.URL) || audience == r.Whole)"}},
			"auth/oauth", "TestATokenForAPartIsNoneForTheWholeAndHasOnlyItsScopes"},
		{"an audience that the resource begins with is good", []edit{
			{"auth/resource.go", `import "switchboard/internal/scope"`, `import ("strings"; "switchboard/internal/scope")`},
			{"auth/resource.go", "(audience == r.URL || audience == r.Whole)", "strings.HasPrefix(r.URL, audience)"}},
			"auth", "TestATokenIsGoodWhereItWasIssuedForAndTheWholeForItsParts"},
		{"an audience is not looked at", one("auth/bearer.go", "if !a.resource(resource).accepts(audience) {", "if audience == \"\" {"),
			"auth", "TestATokenIsGoodWhereItWasIssuedForAndTheWholeForItsParts"},
		{"the nonce of a question is not the key of its call", one("mcp/confirm.go", "Key: about.Nonce,", "Key: about.Nonce + rand.Text(),"),
			"mcp", "TestAnAcceptedCallSentTwiceRunsOnce"},
		{"a question has no nonce", one("mcp/confirm.go", "Nonce: rand.Text(),", "Nonce: rand.Text()[:0] + \"none\","),
			"mcp", "TestAnAcceptedCallSentTwiceRunsOnce"},
		{"a yes of one connection is good for another", one("mcp/confirm.go", "case about.Via != string(c.Via) || about.Caller != c.ID:", "case c.Org == \"\":"),
			"mcp", "TestAConfirmationIsGoodForOneCallerOneCallAndAWhile"},
		{"a yes to one call is good for another", one("mcp/confirm.go", "case about.Tool != tool || about.Arguments != arguments:", "case about.Tool != tool:"),
			"mcp", "TestAConfirmationIsGoodForOneCallerOneCallAndAWhile"},
		{"the hash of a question is not over what it says", []edit{
			{"mcp/confirm.go", "mac, _ := h.secrets.Derive(about.Key, seal.Asked, string(text))", "mac, _ := h.secrets.Derive(about.Key, seal.Asked, about.Key)"},
			{"mcp/confirm.go", "want, known := h.secrets.Derive(about.Key, seal.Asked, string(text))", "want, known := h.secrets.Derive(about.Key, seal.Asked, about.Key)"}},
			"mcp", "TestAConfirmationIsGoodForOneCallerOneCallAndAWhile"},
		{"a yes to one price is good for another", one("tools/kit/run.go", ` && yes.Shown == preview.Digest()`, ""),
			"mcp", "TestAYesIsToThePriceThatWasShown"},
		{"a question may be written by anybody", one("mcp/confirm.go", "return about, known && hmac.Equal(mac, want)", "return about, known && hmac.Equal(mac[:0], want[:0])"),
			"mcp", "TestAConfirmationIsGoodForOneCallerOneCallAndAWhile"},
		{"a revoked connection is let in", one("auth/bearer.go", "s.revoked = !grantRevoked.IsZero() || !connectionRevoked.IsZero()", "s.revoked = !grantRevoked.IsZero()"),
			"auth", "TestWhatIsRevokedIsDeadWithTheNextCallWhileOthersGoOn"},
		{"the first of two Authorization headers counts", one("auth/bearer.go", "if len(headers) > 1 {", "if false {"),
			"auth", "TestAnythingThatIsNoValidTokenIsUnauthorizedAndSaysWhy"},
		{"the role counts at consent and not on each call", one("auth/bearer.go", "scope.Role(s.role.String), scope.Parse(s.scope)", "scope.Owner, scope.Parse(s.scope)"),
			"auth", "TestARoleThatWasLoweredCountsAtOnceAndLeavingEndsEverything"},
		{"a tool asks for its scope and not for the role", one("tools/kit/permission.go", "for _, need := range needs {", "for _, need := range needs[:0] {"),
			"tools", "TestARoleBelowTheScopesIsForbidden"},
		{"a tool runs without its scope", one("tools/kit/permission.go", "len(missing) > 0 {", "len(missing) > 1 {"),
			"tools", "TestWithoutItsScopeNoToolRuns"},
		{"a call that needs a yes runs without", one("tools/kit/run.go", "|| a.confirmed {", "|| true {"),
			"tools/kit", "TestGatesStandInOrder"},
		{"a message without a caller is let through", one("mcp/gate.go", "!ok || !authenticated {", "!ok && !authenticated {"),
			"mcp", "TestTheGateFailsClosed"},
		{"a method that nobody listed is let through", one("mcp/gate.go", `if h.lets(method) == "" || `, `if h.lets(method) == "x" || `),
			"mcp", "TestTheGateFailsClosed"},
		{"what stands behind the front sees the token", one("mcp/front.go", "	r.Header = header\n", "	header[\"Authorization\"] = r.Header[\"Authorization\"]\n	r.Header = header\n"),
			"mcp", "TestNothingBehindTheFrontSeesACredential"},
		{"calls are not counted", one("mcp/front.go", "h.limits.admit(c); !ok {", "h.limits.admit(c); !ok && false {"),
			"mcp", "TestRatesAreLimitedPerConnectionPersonAndOrganization"},
		{"a challenge forgets what the app has", one("auth/challenge.go", `"scope", have.Union(need).String(),`, `"scope", need.String(),`),
			"auth", "TestTheScopeChallengeAsksForWhatIsThereAndWhatIsMissing"},
		{"a key never ends", one("auth/bearer.go", "case !s.expiresAt.IsZero() && !time.Now().Before(s.expiresAt.Time):", "case false:"),
			"auth", "TestAKeyEndsToTheSecond"},
		{"anybody revokes any key of the organization", one("auth/keys.go", "err := a.visible(ctx).Take(&row, \"id = ?\", id).Error", "err := a.Store.DB(ctx).Where(\"revoked_at IS NULL\").Take(&row, \"id = ?\", id).Error"),
			"auth", "TestKeysAreSeenAndRevokedAsConnectionsAre"},
		{"one query of contacts looks at every organization", one("tools/contacts/find.go", "q := s.store.DB(ctx)\n", "q := s.store.DB(store.AllOrgs(ctx, \"a bug\"))\n"),
			"tools", "TestAnotherOrganizationsIDsAreNotFound"},
		{"the fence lets a read through", one("internal/store/org.go", "func (OrgID) QueryClauses(f *schema.Field) []clause.Interface { return fenced(f, opQuery) }",
			"func (OrgID) QueryClauses(*schema.Field) []clause.Interface { return nil }"),
			"internal/store", "TestNoQueryReadsAnotherOrganizationsRows"},
		{"the fence lets an update through", one("internal/store/org.go", "func (OrgID) UpdateClauses(f *schema.Field) []clause.Interface { return fenced(f, opUpdate) }",
			"func (OrgID) UpdateClauses(*schema.Field) []clause.Interface { return nil }"),
			"internal/store", "TestNoStatementWritesAnotherOrganizationsRows"},
		{"a page of any origin may call", one("internal/web/origins.go", "len(origins) == 1 && !e.admits(origins[0])", "false"),
			"internal/web", "TestOriginsAreAdmittedByTheirExactForm"},
		{"any host name is ours", one("internal/web/hosts.go", "!e.hosts[name] && ", "false && "),
			"internal/web", "TestHostsThatAreNotOursAreRefused"},
		{"whoever forwards is believed", one("internal/web/client.go", "if !e.trusts(c.ip) {", "if false {"),
			"internal/web", "TestForwardedHeadersCountFromTrustedPeersOnly"},
		{"a document may be fetched from this network", one("internal/outbound/outbound.go", "raw); err != nil {", "raw); err != nil && !ip.IsPrivate() {"),
			"internal/outbound", "TestNoSpellingOfAPrivateAddressIsReached"},
		{"a fetch follows redirects", one("internal/outbound/outbound.go", "return http.ErrUseLastResponse", "return nil"),
			"internal/outbound", "TestAnAnswerHasASizeATimeAndNoNextPlace"},
	}
}

// appsAndPages are bugs of the pages and of signing in.
func appsAndPages() []bug {
	const in = "consent-ui"
	return []bug{
		{"a form is good in every browser", []edit{
			{"consent-ui/forms.go", "mac(u.FormKeys[0], browser, purpose, as, subject)", "mac(u.FormKeys[0], purpose, as, subject)"},
			{"consent-ui/forms.go", "mac(key, browser, purpose, as, subject)", "mac(key, purpose, as, subject)"}},
			in, "TestNoFormIsGoodInAnotherBrowser"},
		{"a form is good for every page", []edit{
			{"consent-ui/forms.go", "mac(u.FormKeys[0], browser, purpose, as, subject)", "mac(u.FormKeys[0], browser, as, subject)"},
			{"consent-ui/forms.go", "mac(key, browser, purpose, as, subject)", "mac(key, browser, as, subject)"}},
			in, "TestNoFormIsGoodForAnotherPage"},
		{"a form of a page elsewhere is taken", one("consent-ui/visit.go", "if u.crossSite(r) {", "if false {"),
			in, "TestAFormIsGoodInItsOwnJarAndNowhereElse"},
		{"an app that was allowed before is not asked about", one("consent-ui/consent.go", "u.offer(&p)\n", `if u.offer(&p); p.Again {
		location, err := u.OAuth.Decide(r.Context(), v.subject, v.browser, oauth.Decision{
			Approve: true, PersonID: v.session.Person.ID, OrgID: p.Chosen.Organization.ID, Scopes: p.Pending.Requested,
		})
		redirect(w, location)
		return err
	}
`),
			in, "TestAnAppThatHoldsAllItAsksForIsAskedAboutAgain"},
		{"a form of somebody else acts as who is signed in", one("consent-ui/visit.go", "if !e.open && as != v.session.Person.ID {", "if !e.open && as != as {"),
			in, "TestAFormOfSomebodyElseShowsThePageAgainAndDoesNothing"},
		{"a form of one organization acts in another", one("consent-ui/visit.go", "!e.across && in != v.here.Organization.ID {", "!e.across && in != in {"),
			in, "TestAFormOfAnotherOrganizationShowsThePageAgainAndDoesNothing"},
		{"a script may read a cookie", one("consent-ui/cookies.go", "HttpOnly: true", "HttpOnly: false"),
			in, "TestTheCookiesFollowTheScheme"},
		{"a neighbour may plant a cookie", one("consent-ui/cookies.go", `return "__Host-" + base`, "return base"),
			in, "TestTheCookiesFollowTheScheme"},
		{"a name keeps its direction characters", one("consent-ui/theirs.go", "unicode.Cc, unicode.Cf, ", "unicode.Cc, "),
			in, "TestTheNameOfAnAppIsInert"},
		{"nobody is warned of an app on this machine", one("consent-ui/consent_templ.go", "p.Pending.Loopback && !p.Empty()", "p.Pending.Loopback && p.Pending.ClientHost == \"\" && !p.Empty()"),
			in, "TestAnAppOnThisMachineIsWarnedOf"},
		{"the sign-in leads to any address", one("consent-ui/signin.go", "	return \"/connections\"\n}\n\n// signInPath", "	return next\n}\n\n// signInPath"),
			in, "TestNobodyIsSentAwayFromHere"},
		{"a page can be framed", one("consent-ui/visit.go", "; frame-ancestors 'none'", ""),
			in, "TestEveryPageCarriesTheHeaders"},
		{"a form is sent on with its password", one("consent-ui/ui.go", "w.WriteHeader(http.StatusSeeOther)", "w.WriteHeader(http.StatusTemporaryRedirect)"),
			in, "TestNobodyIsSentAwayFromHere"},
		{"a sign-in goes on in the session before", one("consent-ui/session.go", `if session.ID != "" {`, `if session.ID != "" && session.Options.MaxAge < 0 {`),
			in, "TestAnOldSignInFormStillWorksAndEndsTheSessionBefore"},
		{"an unknown address costs no password hash", one("auth/accounts/passwords.go", "	if !known {\n		hash = p.decoy\n	}\n", "	if !known {\n		return false, nil\n	}\n"),
			"auth/accounts", "TestAnUnknownAddressCostsTheSamePasswordHash"},
		{"a refusal comes at once", one("auth/accounts/signin.go", "time.Until(began.Add(a.RefusalTime))", "time.Until(began)"),
			"auth/accounts", "TestARefusalTakesItsTimeWhoeverItIs"},
		{"every sign-in clears the count of its address", one("auth/accounts/signin.go", "	if !ok {\n		return Person{}, ErrMismatch\n	}\n	attempt.succeeded()\n", "	attempt.succeeded()\n	if !ok {\n		return Person{}, ErrMismatch\n	}\n"),
			"auth/accounts", "TestAnAddressIsThrottledWhereverTheGuessesComeFrom"},
	}
}
