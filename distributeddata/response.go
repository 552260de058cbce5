package distributeddata

import "errors"

// Response is the answer to any message. *GetResponse[T], *UpdateResponse[T], *DeleteResponse[T]
// and *TransactionResponse are Responses. An actor that sends many requests can handle them in one
// case:
//
//	case distributeddata.Response:
//		if errors.Is(m.Err(), distributeddata.ErrQuorum) {
//			…
//		}
type Response interface {
	ID() string // the name of the entry; empty if the response is not about one
	Err() error // the error that the direct call would have returned
	Echo() any  // the Echo of the request
	isResponse()
}

// answer holds the fields that all responses share.
type answer struct {
	id   string
	echo any
	err  error
}

func (a *answer) isResponse() {}

// ID implements Response.
func (a *answer) ID() string { return a.id }

// Err implements Response.
func (a *answer) Err() error { return a.err }

// Echo implements Response.
func (a *answer) Echo() any { return a.echo }

// outcomeOf returns the error of an operation as the word that spans and metrics show.
func outcomeOf(err error) string {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case err == nil:
		return "success"
	case is(ErrModify): // first: it wraps what the application returned
		return "refused"
	case is(ErrNotFound):
		return notFound
	case is(ErrDeleted):
		return "deleted"
	case is(ErrQuorum), is(ErrStore):
		return "not reached"
	case is(ErrUnknown):
		return "unclear"
	}
	return "failed"
}

const notFound = "not found"
