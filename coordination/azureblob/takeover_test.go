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

func TestTakeover(t *testing.T) {
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
