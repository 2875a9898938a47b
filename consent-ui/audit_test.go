package consentui

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"switchboard/auth"
	"switchboard/auth/accounts"
	"switchboard/internal/audit"
	"switchboard/internal/caller"
	"switchboard/internal/scope"
	"switchboard/internal/trial"
)

func TestTheLogSpeaksTheLanguageOfTheOrganization(t *testing.T) {
	w := newWorld()
	revoked := entry("aud_1", "revoke", audit.OK, caller.Browser, "Web page")
	revoked.Detail = audit.Detail{"kind": "connection", "app": "Claude", "person": "Amira\u202e Nasser"}
	made := entry("aud_2", "user_create", audit.OK, caller.System, "")
	made.Detail = audit.Detail{"role": "admin"}
	changed := entry("aud_3", "upsert_contact", audit.OK, caller.Connection, "Claude")
	changed.Detail = audit.Detail{"replay": true, "scopes": "contacts:read", "from_later": 7}
	w.entries = []audit.Entry{revoked, made, changed}
	for lang, want := range map[string][]string{
		"en": {
			"Revoking an app or a key|App=Claude|Kind=Connection|Person=Amira Nasser",
			"New person|Role=admin",
			"Creating or changing a contact|from_later=7|Repeated=Yes, the first answer was given again|Permissions=contacts:read",
		},
		"ar": {
			"إلغاء وصول تطبيق أو مفتاح|التطبيق=Claude|النوع=اتصال|الشخص=Amira Nasser",
			"شخص جديد|الدور=مشرف",
			"إنشاء جهة اتصال أو تعديلها|from_later=7|مكرر=نعم، أُعيد الجواب الأول|الأذونات=contacts:read",
		},
	} {
		here := clinic
		here.Locale = lang
		w.members[amira.ID] = []accounts.Membership{{Organization: here, Role: scope.Owner}}
		b := newBrowser(t, serveWorld(t, w).URL)
		b.signIn(amira)
		got := []string{}
		for _, row := range b.get("/audit").all("tr", func(n *html.Node) bool { return trial.HasAttr(n, "data-action") }) {
			said := textOf(descendants(row, "span", func(n *html.Node) bool { return trial.Attr(n, "class") == "d" })[2])
			names, values := descendants(row, "dt", nil), descendants(row, "dd", nil)
			for i := 4; i < len(names); i++ { // after the entry's id, time, subject and request
				said += "|" + textOf(names[i]) + "=" + textOf(values[i])
			}
			got = append(got, said)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", lang, diff)
		}
	}
}

func TestAnAppWithoutANameIsNotSaidToCallItselfAnything(t *testing.T) {
	w := newWorld()
	w.connections = []auth.Connection{connected("con_1", "", amira, "contacts:read")}
	answered := entry("aud_1", "consent", audit.OK, caller.Browser, "")
	answered.Detail = audit.Detail{"app": ""}
	w.entries = []audit.Entry{answered, entry("aud_2", "upsert_contact", audit.OK, caller.Connection, "")}
	b := newBrowser(t, serveWorld(t, w).URL)
	at := b.get("/oauth/authorize?client_name=%20%E2%80%AE").header.Get("Location")
	signIn := b.get("/sign-in?next=" + strings.TrimPrefix(at, "/consent/"))
	b.signIn(amira)
	for name, tt := range map[string]struct {
		page  *page
		times int
	}{
		"the sign-in": {signIn, 1}, "the consent page": {b.get(at), 3}, "the connections": {b.get("/connections"), 3},
		"the log: the filter, what it was about and its detail, through what": {b.get("/audit"), 4},
	} {
		said := textOf(tt.page.all("main", nil)[0])
		if strings.Count(said, "Unnamed app") < tt.times || strings.Contains(said, "calls itself") {
			t.Errorf("%s says: %s", name, said)
		}
	}
}
