//go:build stores

package azureblob_test

import (
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/concord-go/concord/coordination/azureblob"
	"github.com/concord-go/concord/coordination/internal/faulty"
)

var silences = flag.Int("silences", 1, "how often the connections of a holder fall silent")

var address = regexp.MustCompile(`BlobEndpoint=http://([^/;]+)/([^;/]+)`)

// TestSilent_ConnectionsCostNoLease lets connections to the service fall silent, and new ones work.
func TestSilent_ConnectionsCostNoLease(t *testing.T) {
	t.Parallel()
	connection, name := os.Getenv("CONCORD_AZURE"), fresh()
	found := address.FindStringSubmatch(connection)
	key := regexp.MustCompile(`AccountKey=([^;]+)`).FindStringSubmatch(connection)
	if found == nil || key == nil {
		t.Fatal("CONCORD_AZURE names no http service with a key: run make stores")
	}
	member := func() faulty.Member {
		proxy := faulty.New(t, found[1])
		open, err := azureblob.Opener(func(into any) error {
			*into.(*azureblob.Settings) = azureblob.Settings{Install: true, Account: found[2],
				AccountKey: key[1], URL: "http://" + proxy.Address + "/" + found[2] + "/" + name}
			return nil
		})
		must(t, err)
		s, err := open()
		must(t, err)
		return faulty.Member{Store: s, Silence: proxy.Silence}
	}
	faulty.Silent(t, *silences, member(), member())
}
