package postgres

import (
	"strings"
	"testing"
)

func TestSettings_ErrorsNameNoPassword(t *testing.T) {
	for _, url := range []string{"postgres://me:let mein@host/db", "password = mein port=x",
		"user=me password='let mein port=x", "postgres://me:le@tmein@host:x/db"} {
		err := options{URL: url, MaxConnections: 2}.Validate()
		if err == nil || strings.Contains(err.Error(), "mein") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
