package distributeddata

import (
	"errors"
	"fmt"
)

// Response is the answer to a message, whatever it asked for: *GetResponse[T], *UpdateResponse[T], *DeleteResponse[T],
// *TransactionResponse, *KeysResponse, *ReplicaCountResponse and *ForgetResponse are Responses. An actor that asks
// much can take them in one case:
//
//	case distributeddata.Response:
//		switch m.Outcome() {
//		case distributeddata.Success:
//			if items, ok := Cart.Value(m); ok {
//				…
//			}
//		case distributeddata.NotReached:
//			…
type Response interface {
	ID() string       // the name of the entry; empty if it is not about one
	Outcome() Outcome // what became of the request
	Err() error       // as the direct call would have returned it
	Echo() any        // what the request had as its Echo
	isResponse()
}

// Outcome says in one word what became of a request.
type Outcome int

// The outcomes. Response.Err has the details.
const (
	Success    Outcome = iota
	NotFound           // of Get: ErrNotFound
	Buried             // ErrDeleted: the entry was deleted for good
	Refused            // ErrModify: the function refused or panicked; nothing has changed; see ModifyError
	NotReached         // ErrQuorum, ErrStore: a write is kept here, and goes on spreading; see QuorumError
	Unclear            // ErrUnknown: it may have happened
	Failed             // nothing was done: ErrInvalid, ErrType, ErrLimit, ErrClosed, ErrBetweenLives, ErrLoading, ErrStoreBusy, a value that cannot be decoded
)

var outcomes = [...]string{"success", "not found", "buried", "refused", "not reached", "unclear", "failed"}

// String returns the outcome in words.
func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomes) {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return outcomes[o]
}

// answer is what all responses have.
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

// Outcome implements Response.
func (a *answer) Outcome() Outcome { return outcomeOf(a.err) }

// outcomeOf returns what an error of an operation says in one word.
func outcomeOf(err error) Outcome {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case err == nil:
		return Success
	case is(ErrModify): // first: it wraps what the application returned
		return Refused
	case is(ErrNotFound):
		return NotFound
	case is(ErrDeleted):
		return Buried
	case is(ErrQuorum), is(ErrStore):
		return NotReached
	case is(ErrUnknown):
		return Unclear
	}
	return Failed
}

// Value returns the value in the response to a Get or an Update of this key. The result is false for any other
// response, and for one that brings no value.
func (k Key[T]) Value(r Response) (v T, ok bool) {
	if r.ID() == k.id && r.Err() == nil {
		switch m := r.(type) {
		case *GetResponse[T]:
			return m.value, true
		case *UpdateResponse[T]:
			return m.value, true
		}
	}
	return k.empty, false
}
