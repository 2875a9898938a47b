package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/auth/oauth"
)

// clearEnv takes the settings of whoever runs the test out of it.
func clearEnv(t *testing.T) {
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "SWITCHBOARD_") {
			t.Setenv(name, value) // restores it afterwards
			_ = os.Unsetenv(name)
		}
	}
}

// parse reads a command line the way main does.
func parse(t *testing.T, args ...string) (*commands, error) {
	t.Helper()
	var cli commands
	parser, err := newParser(&cli, console{out: io.Discard, errors: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	parser.Exit = func(int) { t.Fatal("parsing ended the process") }
	if _, err = parser.Parse(args); err != nil {
		return nil, err
	}
	return &cli, cli.check()
}

func TestWithoutSettingsItServesThisMachineAlone(t *testing.T) {
	clearEnv(t)
	cli, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Addr: "localhost:8080", Database: "data/switchboard.db", KeyFile: "data/switchboard.key", CodeTTL: time.Minute, AccessTTL: time.Hour,
		RefreshTTL: 30 * 24 * time.Hour, RefreshGrace: time.Minute, RatePerMinute: 60, LogLevel: "info",
	}
	if diff := cmp.Diff(want, cli.Config); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(oauth.Lifetimes{Code: time.Minute, Access: time.Hour, Refresh: 30 * 24 * time.Hour, Grace: time.Minute}, cli.lifetimes()); diff != "" {
		t.Errorf("the defaults of the two packages differ: %s", diff)
	}
	if origin, err := cli.origin(); err != nil || origin.String() != "http://localhost:8080" {
		t.Errorf("%s %v", origin, err)
	}
}

func TestSettingsComeFromTheEnvironmentAndFlagsWin(t *testing.T) {
	clearEnv(t)
	for name, value := range map[string]string{
		"SWITCHBOARD_ADDR": "0.0.0.0:9000", "SWITCHBOARD_URL": "https://sb.example", "SWITCHBOARD_DATABASE": "postgres://u@h/d", "SWITCHBOARD_KEY_FILE": "/k",
		"SWITCHBOARD_CODE_TTL": "30s", "SWITCHBOARD_ACCESS_TTL": "5m", "SWITCHBOARD_REFRESH_TTL": "24h", "SWITCHBOARD_REFRESH_GRACE": "0s",
		"SWITCHBOARD_RATE_PER_MINUTE": "0", "SWITCHBOARD_TRUSTED_PROXIES": "10.0.0.0/8, ::1", "SWITCHBOARD_HOSTS": "a,b", "SWITCHBOARD_ORIGINS": "https://x.example",
		"SWITCHBOARD_INSECURE": "1", "SWITCHBOARD_LOG_LEVEL": "debug",
	} {
		t.Setenv(name, value)
	}
	cli, err := parse(t, "--access-ttl=10m", "serve")
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Addr: "0.0.0.0:9000", URL: "https://sb.example", Database: "postgres://u@h/d", KeyFile: "/k", CodeTTL: 30 * time.Second, AccessTTL: 10 * time.Minute,
		RefreshTTL: 24 * time.Hour, TrustedProxies: "10.0.0.0/8, ::1", Hosts: []string{"a", "b"}, Origins: []string{"https://x.example"}, Insecure: true, LogLevel: "debug",
	}
	if diff := cmp.Diff(want, cli.Config); diff != "" {
		t.Error(diff)
	}
}

func TestTheOriginIsWrittenInOneWay(t *testing.T) {
	clearEnv(t)
	for _, c := range []struct{ addr, url, want string }{
		{"localhost:8080", "", "http://localhost:8080"},
		{"localhost:9999", "", "http://localhost:9999"},
		{"127.0.0.1:80", "", "http://localhost"},
		{":8080", "", "http://localhost:8080"},
		{"[::1]:8080", "", "http://localhost:8080"},
		{"localhost:8080", "https://SB.Example", "https://sb.example"},
		{"localhost:8080", "HTTPS://sb.example/", "https://sb.example"},
		{"localhost:8080", "https://sb.example:443", "https://sb.example"},
		{"localhost:8080", "https://sb.example:", "https://sb.example"},
		{"localhost:8080", "https://sb.example?", "https://sb.example"},
		{"localhost:8080", "https://sb.example:8443", "https://sb.example:8443"},
		{"localhost:8080", "http://127.0.0.1:80", "http://127.0.0.1"},
		{"localhost:8080", "http://[::1]:8080", "http://[::1]:8080"},
		{"localhost:8080", "http://localhost", "http://localhost"},
	} {
		got, err := (&Config{Addr: c.addr, URL: c.url}).origin()
		if err != nil || got.String() != c.want {
			t.Errorf("%+v: %s %v", c, got, err)
		}
	}
}

func TestSettingsThatCannotWorkAreRefusedByName(t *testing.T) {
	clearEnv(t)
	for _, c := range []struct{ flag, message string }{
		{"--addr=localhost", "SWITCHBOARD_ADDR"},
		{"--url=sb.example", "SWITCHBOARD_URL"},
		{"--url=https://", "SWITCHBOARD_URL"},
		{"--url=ftp://sb.example", "SWITCHBOARD_URL"},
		{"--url=https://sb.example/path", "SWITCHBOARD_URL"},
		{"--url=https://sb.example?x=1", "SWITCHBOARD_URL"},
		{"--url=https://sb.example/#x", "SWITCHBOARD_URL"},
		{"--url=https://u:p@sb.example", "SWITCHBOARD_URL"},
		{"--url=http://sb.example", "SWITCHBOARD_INSECURE"},
		{"--url=http://192.168.1.7:8080", "SWITCHBOARD_INSECURE"},
		{"--url=http://localhost.evil.example", "SWITCHBOARD_INSECURE"},
		{"--url=http://127.0.0.1.evil.example", "SWITCHBOARD_INSECURE"},
		{"--url=http://0.0.0.0:8080", "SWITCHBOARD_INSECURE"},
		{"--code-ttl=0s", "SWITCHBOARD_CODE_TTL"},
		{"--code-ttl=11m", "SWITCHBOARD_CODE_TTL"},
		{"--code-ttl=60", "--code-ttl"},
		{"--access-ttl=-1h", "SWITCHBOARD_ACCESS_TTL"},
		{"--access-ttl=25h", "SWITCHBOARD_ACCESS_TTL"},
		{"--refresh-ttl=10ms", "SWITCHBOARD_REFRESH_TTL"},
		{"--refresh-ttl=9000h", "SWITCHBOARD_REFRESH_TTL"},
		{"--refresh-grace=-1s", "SWITCHBOARD_REFRESH_GRACE"},
		{"--refresh-grace=1h", "SWITCHBOARD_REFRESH_GRACE"},
		{"--rate-per-minute=-1", "SWITCHBOARD_RATE_PER_MINUTE"},
		{"--rate-per-minute=many", "--rate-per-minute"},
		{"--trusted-proxies=10.0.0.0/33", "SWITCHBOARD_TRUSTED_PROXIES"},
		{"--trusted-proxies=proxy.example", "SWITCHBOARD_TRUSTED_PROXIES"},
		{"--log-level=loud", "--log-level"},
		{"--unknown", "--unknown"},
	} {
		if _, err := parse(t, c.flag); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v", c.flag, err)
		}
	}
	if _, err := parse(t, "--url=http://192.168.1.7:8080", "--insecure"); err != nil {
		t.Errorf("insecure where that is wanted: %v", err)
	}
}

func TestAnExpiryTakesDaysToo(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "never": 0, "90d": 90 * 24 * time.Hour, "1d": 24 * time.Hour, "12h": 12 * time.Hour, "1h30m": 90 * time.Minute, "30d12h": 732 * time.Hour, "3650d": 3650 * 24 * time.Hour,
	} {
		var got expiry
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("%q: %s %v", text, time.Duration(got), err)
		}
	}
	for _, text := range []string{"0", "0d", "0s", "-1d", "-1h", "1d-48h", "d", "x", "90", "90days", "1d1d", "1.5d", "3651d", "99999999999999999999d", "1y", " 1d", "Never"} {
		var got expiry
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken for %s", text, time.Duration(got))
		}
	}
}
