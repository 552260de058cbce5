package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/concord-go/concord/coordination"
)

// Header is the HTTP header that carries the token, as a decimal number without sign or leading zeros.
const Header = "Fencing-Token"

// TokenOf returns the token of a request's header, or an error that is ErrToken: there must be exactly one,
// in exactly the form that Transport writes.
func TokenOf(h http.Header) (coordination.Token, error) {
	values := h.Values(Header)
	if len(values) != 1 {
		return 0, fmt.Errorf("%w: %d headers %s, want one", ErrToken, len(values), Header)
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != values[0] {
		return 0, fmt.Errorf("%w: %s %.40q, must be a number from 1 to %d", ErrToken, Header, values[0], maxToken)
	}
	return coordination.Token(n), nil
}

// Handler runs next under Do, for requests whose token is not stale. Which resource a request is for, resource
// says; it must not be nil. Others are answered in plain text:
//
//	400 Bad Request           no token, more than one, or not a number: ErrToken; a resource of too long a name: ErrResource
//	412 Precondition Failed   stale; the body names the token and the highest: ErrStale
//	503 Service Unavailable   more resources than the guard's Limit, or the request ended while an older
//	                          effect was under way
//
// The context of a request that is overtaken by a higher token ends, and next should return then.
func (g *Guard) Handler(resource func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		token, err := TokenOf(req.Header)
		if err == nil {
			err = g.Do(req.Context(), resource(req), token, func(ctx context.Context) error {
				next.ServeHTTP(w, req.WithContext(ctx))
				return nil
			})
		}
		if err != nil {
			http.Error(w, err.Error(), status(err))
		}
	})
}

func status(err error) int {
	switch {
	case errors.Is(err, ErrToken), errors.Is(err, ErrResource):
		return http.StatusBadRequest
	case errors.Is(err, ErrStale):
		return http.StatusPreconditionFailed
	}
	return http.StatusServiceUnavailable
}

// Transport puts the token of the tenure in the context of each request into its header, in the place of
// any that is there. It sends nothing when the context has no tenure (ErrNoTenure), or when the tenure's
// Check fails: then the error is that of Check. Contexts of Lease.Do and of a grant have one.
//
// A retry by http.Client, and a redirect, are checked anew.
type Transport struct {
	Base http.RoundTripper // nil: http.DefaultTransport
}

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := tokenUnder(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper always closes it
		}
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set(Header, token.String())
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(req)
}

// tokenUnder returns the token of a tenure under which new work may start.
func tokenUnder(ctx context.Context) (coordination.Token, error) {
	tenure, ok := coordination.FromContext(ctx)
	if !ok {
		return 0, ErrNoTenure
	}
	if err := tenure.Check(); err != nil {
		return 0, err
	}
	return tenure.Token(), nil
}
