package coordination_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
)

func TestSection_Defaults(t *testing.T) {
	for _, c := range []struct {
		in            coordination.Config
		ttl, renew, o time.Duration
	}{
		{coordination.Config{}, 120 * time.Second, 12 * time.Second, 5 * time.Second},
		{coordination.Config{TTL: 40 * time.Second}, 40 * time.Second, 5 * time.Second, 4 * time.Second},
		{coordination.Config{TTL: 6 * time.Second}, 6 * time.Second, 2 * time.Second, 600 * time.Millisecond},
		{coordination.Config{TTL: time.Minute, RenewInterval: time.Second, OperationTimeout: time.Second}, time.Minute, time.Second, time.Second},
	} {
		got := coordination.DefaultSection(coordination.Section{Config: c.in}).Config
		require.Equal(t, []time.Duration{c.ttl, c.renew, c.o}, []time.Duration{got.TTL, got.RenewInterval, got.OperationTimeout})
		require.NoError(t, got.Validate())
	}
}

func TestReadSections_LayersComeInOrder(t *testing.T) {
	got := read(t, `
defaults: {heartbeat-timeout: 60s, heartbeat-interval: 10s, lease-class: file}
sections:
  shop.billing: {heartbeat-interval: 6s, store: {directory: /x}}
  ever: {heartbeat-timeout: infinite, lock-delay: 1m}
  plain:
`, "PATH=/bin", "CONCORD_LEASE_SHOP_BILLING_HEARTBEAT_TIMEOUT=90s", "CONCORD_LEASE_DEFAULTS_LEASE_OPERATION_TIMEOUT=2s",
		"CONCORD_LEASE_PLAIN_LEASE_CLASS=memory")
	file := coordination.Config{TTL: 60 * time.Second, RenewInterval: 10 * time.Second, OperationTimeout: 2 * time.Second}
	billing, ever := file, file
	billing.TTL, billing.RenewInterval = 90*time.Second, 6*time.Second
	ever.TTL, ever.Forever, ever.LockDelay = 0, true, time.Minute
	require.Equal(t, map[string]coordination.Section{
		"shop.billing": {LeaseClass: "file", Config: billing, Store: map[string]any{"directory": "/x"}},
		"ever":         {LeaseClass: "file", Config: ever},
		"plain":        {LeaseClass: "memory", Config: file},
	}, got)
}

func TestReadSections_AllProblemsAtOnce(t *testing.T) {
	_, err := coordination.ReadSections(strings.NewReader(`
sections:
  a.b: {heartbeat-timeout: soon}
  a-b: {heartbeat-timout: 3s}
`), []string{"CONCORD_LEASE_A_HEARTBEAT_TIMEOUT=1s", "CONCORD_LEASE_A_B_MARGIN=[", "CONCORD_LEASEX=1"})
	require.ErrorIs(t, err, coordination.ErrInvalid)
	for _, problem := range []string{"`soon` into time.Duration", "heartbeat-timout not found",
		"CONCORD_LEASE_A_HEARTBEAT_TIMEOUT belongs to no key", `CONCORD_LEASE_A_B_MARGIN is for margin of "a-b" and for margin of "a.b"`,
		"variable CONCORD_LEASE_A_B_MARGIN: yaml"} {
		require.ErrorContains(t, err, problem)
	}
	require.NotContains(t, err.Error(), "LEASEX")
}

func TestReadSections_RefusesWhatItCannotBe(t *testing.T) {
	for what, text := range map[string]string{
		"another key": "section: {a: {}}", "a list": "- a", "defaults as a section": "sections: {defaults: {}}",
		"too much": "# " + strings.Repeat("x", 1<<20),
	} {
		_, err := coordination.ReadSections(strings.NewReader(text), nil)
		require.ErrorIs(t, err, coordination.ErrInvalid, what)
	}
	require.Empty(t, read(t, ""))
}

func FuzzReadSections(f *testing.F) {
	f.Add("sections: {a: {lease-class: file, heartbeat-timeout: 3s}}", "CONCORD_LEASE_A_MARGIN=1s")
	f.Add("defaults: {store: {x: [1]}}\nsections: {a: , b: {forever: true}}", "CONCORD_LEASE_DEFAULTS_FOREVER=yes")
	f.Fuzz(func(t *testing.T, text, variable string) {
		sections, err := coordination.ReadSections(strings.NewReader(text), []string{variable})
		if err == nil && sections == nil {
			t.Error("neither sections nor an error")
		}
	})
}
