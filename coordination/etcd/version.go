package etcd

import (
	"strconv"
	"strings"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// version of a record is the revision of its last change and, if the record names a holder, the
// token of the tenure, which distinguishes a renewal from a claim. It is zero if there is no
// record.
type version struct {
	mod   int64
	token coordination.Token
}

func versionOf(mod int64, r leasestore.Record) version {
	if r.Nonce == "" {
		return version{mod: mod}
	}
	return version{mod, r.Token}
}

// given returns the token of a tenure that asked for token asked and whose holder's key was created
// at a revision: the larger of both, because every earlier lock of another program came at a
// smaller revision. No other program locks the record of a session, and its leases know the token
// before it is written.
func (k keys) given(asked coordination.Token, created int64) coordination.Token {
	if k.ofSession() {
		return asked
	}
	return max(asked, coordination.Token(created))
}

// TokenOf implements leasestore.TokenGiver.
func (s *store) TokenOf(mark leasestore.Version) coordination.Token {
	v, _ := parse(mark)
	return v.token
}

// mark returns the version as callers see it.
func (v version) mark() leasestore.Version {
	switch {
	case v.mod == 0:
		return ""
	case v.token == 0:
		return leasestore.Version(strconv.FormatInt(v.mod, 10))
	}
	return leasestore.Version(strconv.FormatInt(v.mod, 10) + ":" + v.token.String())
}

// locked marks a version on which no write may depend; it is different at each read. While a lock
// of another program is held, no version allows a swap, because etcd shows only through its
// presence whether that lock is alive.
const locked = "~"

// parse returns false for a version that cannot be the present one.
func parse(mark leasestore.Version) (v version, ok bool) {
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
