package main

import (
	"io"
	"testing"

	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/examples/three"
)

// The output must match the comment of the command. The program itself checks the accounts.
func TestOutput(t *testing.T) {
	b := newBank()
	three.CheckWithLeases(t, "bank", memory.New(), b.attach, b.run)
}

func TestOutput_OnFiles(t *testing.T) {
	leases, err := file.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer leases.Close()
	b := newBank()
	three.CheckWithLeases(t, "bank", leases, b.attach, b.run)
}

func TestStore_ThatDoesNotExist(t *testing.T) {
	for _, at := range []string{"", "file", "file:", "etcd:", "kubernetes", "redis:127.0.0.1:6379",
		"file:/no/such/parent/directory"} {
		if err := open(t.Context(), io.Discard, at); err == nil {
			t.Errorf("-store %q was opened", at)
		}
	}
}
