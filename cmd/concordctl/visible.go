package main

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// visible is a writer to a terminal. Texts come from others, and must not move the cursor or
// imitate other output: unprintable characters are replaced, in JSON by their escapes.
type visible struct {
	out  io.Writer
	json bool
	rest []byte // the beginning of a character
}

// Write implements io.Writer.
func (v *visible) Write(b []byte) (int, error) {
	text := append(v.rest, b...)
	var clean []byte
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch text = text[size:]; {
		case r == '\n' || unicode.IsPrint(r):
			clean = utf8.AppendRune(clean, r)
		case v.json:
			for _, unit := range utf16.Encode([]rune{r}) {
				clean = fmt.Appendf(clean, `\u%04x`, unit)
			}
		default:
			clean = utf8.AppendRune(clean, utf8.RuneError)
		}
	}
	v.rest = append([]byte(nil), text...)
	if _, err := v.out.Write(clean); err != nil {
		return 0, err
	}
	return len(b), nil
}
