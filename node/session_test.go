package node

import (
	"strings"
	"testing"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// TestSession_OwnerIsTheAddressOfTheMember checks that the owner is the address where it is known,
// in the form host:port.
func TestSession_OwnerIsTheAddressOfTheMember(t *testing.T) {
	for want, c := range map[string]RunConfig{
		"127.0.0.1:7000": {Remote: Config{Port: 7000}},
		"10.0.0.1:7000":  {Remote: Config{Host: "10.0.0.1", Port: 7000}},
		"[::1]:7000":     {Remote: Config{Host: "::1", Port: 7000}},
		"shop-1.shop:7000": {Remote: Config{Host: "0.0.0.0", Port: 7001,
			Advertised: "shop-1.shop:7000"}},
		"":   {},
		"me": {Remote: Config{Port: 7000}, Session: coordination.Config{Owner: "me"}},
	} {
		if got := c.session().Owner; got != want {
			t.Errorf("owner %q, want %q", got, want)
		}
	}
}

// TestRunConfig_NamesOfLeases checks that names of leases obey the rules of package coordination
// before anything runs.
func TestRunConfig_NamesOfLeases(t *testing.T) {
	for name, said := range map[string]string{
		strings.Repeat("x", leasestore.MaxName+1): "has 513 bytes, it must have from 1 to 512",
		"a\xff":                         "is not UTF-8 at byte 1",
		leasestore.SessionRecords + "x": "must not begin with concord.session.",
	} {
		err := RunConfig{Guard: name}.validate()
		if err == nil || strings.Count(err.Error(), said) != 1 {
			t.Errorf("%.30q: %v, want %q for Guard", name, err, said)
		}
	}
}
