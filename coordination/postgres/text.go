package postgres

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Suffixes of a nonce. escape writes neither, so a program that does not know them considers the
// row damaged, not its holder dead.
const (
	throughSession = `\session `
	forever        = `\forever`
)

// holder encodes the nonce of the holder, and how the holder keeps the lease.
func holder(r leasestore.Record) string {
	text := escape(r.Nonce)
	if r.Session != 0 {
		text += throughSession + strconv.FormatInt(int64(r.Session), 10)
	}
	if r.Forever {
		text += forever
	}
	return text
}

// readHolder rejects text that holder does not write.
func readHolder(text string, r *leasestore.Record) (err error) {
	rest, isForever := strings.CutSuffix(text, forever)
	nonce, session, through := strings.Cut(rest, throughSession)
	if r.Nonce, err = unescape(nonce); err != nil {
		return err
	}
	r.Forever = isForever
	if through {
		token, err := strconv.ParseInt(session, 10, 64)
		if err != nil || token <= 0 {
			return fmt.Errorf("session %.80q", session)
		}
		r.Session = coordination.Token(token)
	}
	return nil
}

// escape encodes any string as text that PostgreSQL can hold: the zero byte, bytes that are not
// UTF-8 and the backslash become \xHH. Different strings stay different.
func escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == 0 || r == '\\' || r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// unescape rejects text that escape does not write.
func unescape(s string) (string, error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			break
		}
		if len(after) < 3 || after[0] != 'x' {
			return "", fmt.Errorf(`\ without xHH in %.80q`, s)
		}
		c, err := strconv.ParseUint(after[1:3], 16, 8)
		if err != nil {
			return "", fmt.Errorf(`\ without xHH in %.80q`, s)
		}
		b.WriteByte(byte(c))
		s = after[3:]
	}
	return b.String(), nil
}
