package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/concord-go/concord/coordination"
)

// Header is the header of HTTP requests and of messages that carries the token, as a decimal number
// without sign or leading zeros.
const Header = "Fencing-Token"

// tokenOf returns the token in the header of a request. Otherwise the error is ErrInvalid: there
// must be exactly one token, in exactly the form that Transport writes.
func tokenOf(h http.Header) (coordination.Token, error) {
	values := h.Values(Header)
	if len(values) != 1 {
		return 0, fmt.Errorf("%w: %d headers %s, want one", ErrInvalid, len(values), Header)
	}
	return parseToken(values[0])
}

// parseToken accepts only the form that Token.String writes.
func parseToken(text string) (coordination.Token, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != text {
		return 0, fmt.Errorf("%w: %s %.40q, must be a number from 1 to %d", ErrInvalid, Header,
			text, maxToken)
	}
	return coordination.Token(n), nil
}

// Handler runs next under Do, for requests whose token is not stale. resource returns the resource
// that a request is for; it must not be nil. Other requests are answered in plain text:
//
//	400 Bad Request           no token, more than one, or not a number, or a
//	                          resource name that is too long: ErrInvalid
//	412 Precondition Failed   stale; the body names the token and the highest: ErrStale
//	503 Service Unavailable   more resources than the guard's Limit, or the request ended
//	                          while an older effect was running
//
// If a higher token arrives, the context of a running request ends, and next should return.
func (g *Guard) Handler(resource func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		token, err := tokenOf(req.Header)
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
	case errors.Is(err, ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, ErrStale):
		return http.StatusPreconditionFailed
	}
	return http.StatusServiceUnavailable
}

// Transport sets the header of each request to the token of the tenure in the request's context,
// and replaces any header that is there. It sends nothing if the context has no tenure
// (ErrInvalid), or if the tenure's Check fails; the error is then that of Check. Contexts of
// Lease.Do and of a grant have a tenure.
//
// Retries by http.Client and redirects are checked again.
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
		return 0, fmt.Errorf("%w: no tenure: the request's context is not that of a grant or of Lease.Do",
			ErrInvalid)
	}
	if err := tenure.Check(); err != nil {
		return 0, err
	}
	return tenure.Token(), nil
}
