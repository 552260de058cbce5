//go:build stores

package azureblob_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/concord-go/concord/coordination/azureblob"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
)

var address = regexp.MustCompile(`BlobEndpoint=http://([^/;]+)/([^;/]+)`)

// proxied opens stores as a configuration file does.
func proxied(t *testing.T) func(*testing.T) (leasestore.Store, *faulty.Proxy) {
	connection, name := os.Getenv("CONCORD_AZURE"), fresh()
	found := address.FindStringSubmatch(connection)
	key := regexp.MustCompile(`AccountKey=([^;]+)`).FindStringSubmatch(connection)
	if found == nil || key == nil {
		t.Fatal("CONCORD_AZURE names no http service with a key: run make stores")
	}
	return func(t *testing.T) (leasestore.Store, *faulty.Proxy) {
		proxy := faulty.New(t, found[1])
		open, err := azureblob.Opener(func(into any) error {
			*into.(*azureblob.Settings) = azureblob.Settings{Install: true, Account: found[2],
				AccountKey: key[1], URL: "http://" + proxy.Address + "/" + found[2] + "/" + name}
			return nil
		})
		must(t, err)
		s, err := open()
		must(t, err)
		return s, proxy
	}
}

// TestSilent_ConnectionsCostNoLease lets connections to the service fall silent, and new ones work.
func TestSilent_ConnectionsCostNoLease(t *testing.T) { faulty.Silent(t, proxied) }

// TestSlow_RoundTripsCostNoLease delays what is sent on the way.
func TestSlow_RoundTripsCostNoLease(t *testing.T) { faulty.RoundTrips(t, proxied) }

// TestTrips_OfACall delays what is sent on the way, and counts.
func TestTrips_OfACall(t *testing.T) { faulty.Trips(t, proxied, 1) }

// TestCut_WritesThatWereMadeAreNotRefused closes connections at any moment of a write.
func TestCut_WritesThatWereMadeAreNotRefused(t *testing.T) { faulty.Cut(t, proxied) }

func TestFaults_NeverTwoHolders(t *testing.T) { faulty.NeverTwoHolders(t, proxied, nil) }
