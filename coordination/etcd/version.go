package etcd

import (
	"strconv"
	"strings"

	"github.com/concord-go/concord/coordination"
)

// version of a record is the revision of its last change and, if it names a holder, the token of the tenure, which
// tells a renewal from a claim. It is zero without a record.
type version struct {
	mod   int64
	token coordination.Token
}

func versionOf(mod int64, r coordination.Record) version {
	if r.Nonce == "" {
		return version{mod: mod}
	}
	return version{mod, r.Token}
}

// given is the token of a tenure that has asked for one and whose holder's key was created at a revision: the larger of
// both, for every lock of others that was held before came at a smaller revision. No lock of others competes for the
// record of a session, whose leases know the token before it is written.
func (k keys) given(asked coordination.Token, created int64) coordination.Token {
	if strings.HasPrefix(k.name, coordination.SessionRecords) {
		return asked
	}
	return max(asked, coordination.Token(created))
}

// TokenOf implements coordination.TokenGiver.
func (s *Store) TokenOf(mark coordination.Version) coordination.Token {
	v, _ := parse(mark)
	return v.token
}

// mark is what callers are given.
func (v version) mark() coordination.Version {
	switch {
	case v.mod == 0:
		return ""
	case v.token == 0:
		return coordination.Version(strconv.FormatInt(v.mod, 10))
	}
	return coordination.Version(strconv.FormatInt(v.mod, 10) + ":" + v.token.String())
}

// locked marks a version that no write may rest on, different at each look: while a lock of others is held there is
// none to swap on, since nothing in etcd shows whether that lock is alive but its being there.
const locked = "~"

// parse returns false for a version that cannot be the present one.
func parse(mark coordination.Version) (v version, ok bool) {
	if mark == "" {
		return version{}, true
	}
	mod, token, held := strings.Cut(string(mark), ":")
	var err error
	if v.mod, err = strconv.ParseInt(mod, 10, 64); err != nil || v.mod <= 0 {
		return version{}, false
	}
	if held {
		n, err := strconv.ParseUint(token, 10, 64)
		if err != nil {
			return version{}, false
		}
		v.token = coordination.Token(n)
	}
	return v, v.mark() == mark
}
