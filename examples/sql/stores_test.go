//go:build stores

package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/concord-go/concord/examples/three"
)

// The output on a real PostgreSQL, in real time, must match the comment of the command.
func TestOutput_OnPostgres(t *testing.T) {
	at := os.Getenv("CONCORD_POSTGRES")
	if at == "" {
		t.Fatal("CONCORD_POSTGRES is empty: run make stores")
	}
	var out bytes.Buffer
	if err := open(t.Context(), &out, at); err != nil {
		t.Error(err)
	}
	three.Compare(t, "sql -database postgres://localhost/postgres", out.String())
}
