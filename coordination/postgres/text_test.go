package postgres

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/concord-go/concord/coordination/leasestore"
)

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "billing", `a\b`, "a\x00b", "\xff", "日本", `\x00`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := escape(s)
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			t.Errorf("%q becomes %q", s, text)
		}
		if back, err := unescape(text); back != s || err != nil {
			t.Errorf("%q becomes %q, and that %q, %v", s, text, back, err)
		}
	})
}

// FuzzHolder reads any text of the holder's column. What is accepted has one meaning.
func FuzzHolder(f *testing.F) {
	for _, s := range []string{"", "n", `n\session 7`, `n\forever`, `n\session 7\forever`,
		`n\session 0`, `\\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var rec, again leasestore.Record
		if readHolder(s, &rec) != nil {
			return
		}
		if err := readHolder(holder(rec), &again); err != nil || again != rec {
			t.Errorf("%q is %+v, and that is read as %+v, %v", s, rec, again, err)
		}
	})
}

func TestHolder_IsRead(t *testing.T) {
	for _, want := range []leasestore.Record{{}, {Nonce: "n"}, {Nonce: `\session 7\forever`},
		{Nonce: "n", Session: 1<<63 - 1},
		{Nonce: "n", Forever: true}, {Nonce: "n", Session: 7, Forever: true}} {
		var got leasestore.Record
		if err := readHolder(holder(want), &got); got != want || err != nil {
			t.Errorf("%+v is %q and that %+v, %v", want, holder(want), got, err)
		}
	}
	for _, s := range []string{`n\session `, `n\session 0`, `n\session -1`,
		`n\session 99999999999999999999`, `n\forever\session 7`, `n\sibling 7`} {
		var got leasestore.Record
		if err := readHolder(s, &got); err == nil {
			t.Errorf("%q became %+v", s, got)
		}
	}
	if _, err := unescape(holder(leasestore.Record{Nonce: "n", Session: 7})); err == nil {
		t.Error("a program that knows no sessions reads it")
	}
}

func TestUnescape_RefusesWhatEscapeDoesNotMake(t *testing.T) {
	for _, s := range []string{`\`, `\x`, `\x0`, `\n00`, `\xgg`, `a\`} {
		if got, err := unescape(s); err == nil {
			t.Errorf("%q became %q", s, got)
		}
	}
}
