package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/store"
)

// directory returns a directory as left by a member.
func directory(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "rows")
	s, err := bbolt.Open(dir, bbolt.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := &store.Batch{}
	for key, value := range map[string]string{
		"H": "header", "M": "members", "v\x01replica1": "12",
		"d\x01cart\xffapath1": "fresh milk", "d\x01cart\xffapath2": "brown bread",
		"d\x01views\xffapath": "seven 7",
	} {
		b.Put(key, []byte(value))
	}
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOutput_IsAsPromised(t *testing.T) {
	dir := directory(t)
	for _, c := range []struct{ what, want string }{
		{"list", "cart                            2 atoms        47 bytes\n" +
			"views                           1 atoms        20 bytes\n" +
			"2 entries; 6 rows, 94 bytes, of which 3 rows are of no entry\n"},
		{"verify", "6 rows are as they were written\n"},
	} {
		var out strings.Builder
		if err := run(t.Context(), &out, []string{c.what, dir}, ""); err != nil ||
			out.String() != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.what, err, &out, c.want)
		}
	}
	var out strings.Builder
	if err := run(t.Context(), &out, []string{"export", dir}, ""); err != nil ||
		strings.Count(out.String(), "\n") != 6 ||
		!strings.Contains(out.String(), `{"kind":"atom","entry":"cart","generation":1,`) {
		t.Errorf("export: %v\n%s", err, &out)
	}
}

func TestVerify_FindsDamage(t *testing.T) {
	dir := directory(t)
	file := filepath.Join(dir, "rows.db")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file,
		[]byte(strings.ReplaceAll(string(raw), "fresh milk", "fresh silk")), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = run(t.Context(), &out, []string{"verify", dir}, "")
	if err == nil || !strings.Contains(out.String(), `damaged: atom of "cart"`) {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestRun_SaysHowItIsUsed(t *testing.T) {
	for _, args := range [][]string{nil, {"list"}, {"burn", "/tmp"}, {"list", t.TempDir()}} {
		if err := run(t.Context(), &strings.Builder{}, args, ""); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
	if err := run(t.Context(), &strings.Builder{}, []string{"list", "/tmp"}, "xyz"); err == nil {
		t.Error("xyz is a key")
	}
}
