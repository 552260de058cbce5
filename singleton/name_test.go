package singleton_test

import (
	"strings"
	"testing"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/singleton"
)

// TestConfig_NameOfTheLease: the rules of package coordination check the name before anything runs.
func TestConfig_NameOfTheLease(t *testing.T) {
	for name, said := range map[string]string{
		strings.Repeat("x", leasestore.MaxName):   "",
		strings.Repeat("x", leasestore.MaxName+1): "LeaseName: coordination: invalid argument: lease",
		leasestore.SessionRecords:                 "must not begin with",
	} {
		err := settings.Check(singleton.Config{Name: "a", LeaseName: name})
		if said == "" && err != nil || said != "" &&
			(err == nil || !strings.Contains(err.Error(), said)) {
			t.Errorf("%.20q: %v, want %q", name, err, said)
		}
	}
}
