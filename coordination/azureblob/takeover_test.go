//go:build stores

package azureblob_test

import (
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/concord-go/concord/coordination/azureblob"
	"github.com/concord-go/concord/coordination/internal/takeover"
)

// TestTakeover takes fewer leases than on other stores: without watches, each that is waited for is
// read every RetryInterval, and 1,000 of them come near to what Azurite can answer.
func TestTakeover(t *testing.T) {
	if os.Getenv(takeover.Leases) == "" {
		t.Setenv(takeover.Leases, "200")
	}
	name := fresh()
	takeover.Run(t, name, open(t, name), 16*time.Second, nil)
}

func holdAll(name string) error {
	c, err := container.NewClientFromConnectionString(os.Getenv("CONCORD_AZURE"), name, nil)
	if err != nil {
		return err
	}
	s, err := azureblob.New(c, azureblob.Config{})
	if err != nil {
		return err
	}
	return takeover.Hold(s)
}
