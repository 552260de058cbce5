//go:build stores

package file_test

import (
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/takeover"
)

func TestTakeover(t *testing.T) {
	dir := t.TempDir()
	takeover.Run(t, dir, open(t, dir), 16*time.Second, nil)
}
