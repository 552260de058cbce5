package grains

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/sharding"
)

// maxID bounds the id of the entity of a grain, in bytes, as package sharding does.
const maxID = 512

// entityID returns the id of the entity of a grain: its kind, a slash and its identity. A percent
// sign, control characters, and bytes that are not UTF-8, are written as in URLs, and in a kind
// also a slash, so that no two grains have the same id.
func entityID(of *cluster.ClusterIdentity) (string, error) {
	if of.GetKind() == "" {
		return "", fmt.Errorf("%w: grains: identity %.80q has no kind", sharding.ErrInvalid,
			of.GetIdentity())
	}
	id := escape(of.Kind, true) + "/" + escape(of.Identity, false)
	if len(id) > maxID {
		return "", fmt.Errorf("%w: grains: kind %.80q and identity %.80q take %d bytes, at most %d",
			sharding.ErrInvalid, of.Kind, of.Identity, len(id), maxID)
	}
	return id, nil
}

// identityOf returns the grain of an entity. It shares the memory of the id.
func identityOf(id string) (*cluster.ClusterIdentity, error) {
	kind, identity, ok := strings.Cut(id, "/")
	kind, err1 := unescape(kind)
	identity, err2 := unescape(identity)
	if !ok || kind == "" || err1 != nil || err2 != nil {
		return nil, fmt.Errorf("%w: grains: %.80q is not the id of a grain", sharding.ErrInvalid,
			id)
	}
	return &cluster.ClusterIdentity{Kind: kind, Identity: identity}, nil
}

func escape(s string, slash bool) string {
	special := func(r rune) bool {
		return r == '%' || r == utf8.RuneError || slash && r == '/' || unicode.IsControl(r)
	}
	if !strings.ContainsFunc(s, special) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if special(r) && (r != utf8.RuneError || n == 1) {
			for i := range n {
				fmt.Fprintf(&b, "%%%02X", s[i])
			}
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func unescape(s string) (string, error) {
	at := strings.IndexByte(s, '%')
	if at < 0 {
		return s, nil
	}
	out := append(make([]byte, 0, len(s)), s[:at]...)
	for ; at < len(s); at++ {
		if s[at] != '%' {
			out = append(out, s[at])
			continue
		}
		if at+3 > len(s) {
			return "", strconv.ErrSyntax
		}
		n, err := strconv.ParseUint(s[at+1:at+3], 16, 8)
		if err != nil {
			return "", err
		}
		out = append(out, byte(n))
		at += 2
	}
	return string(out), nil
}
