package postgres

import (
	"strings"
	"testing"
	"unicode/utf8"
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

func TestUnescape_RefusesWhatEscapeDoesNotMake(t *testing.T) {
	for _, s := range []string{`\`, `\x`, `\x0`, `\n00`, `\xgg`, `a\`} {
		if got, err := unescape(s); err == nil {
			t.Errorf("%q became %q", s, got)
		}
	}
}
