package main

import (
	"io"
	"testing"
)

func TestDatabase_MustBeGivenAndAnswer(t *testing.T) {
	for _, at := range []string{"", "nonsense",
		"postgres://127.0.0.1:1/postgres?connect_timeout=1"} {
		if err := open(t.Context(), io.Discard, at); err == nil {
			t.Errorf("-database %q was opened", at)
		}
	}
}
