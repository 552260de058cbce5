package distributeddata

import (
	"errors"
	"fmt"
)

// Response is the answer to any message. *GetResponse[T], *UpdateResponse[T], *DeleteResponse[T],
// *TransactionResponse, *KeysResponse, *ReplicaCountResponse and *ForgetResponse are Responses. An
// actor that sends many requests can handle them in one case:
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
	ID() string       // the name of the entry; empty if the response is not about one
	Outcome() Outcome // what became of the request
	Err() error       // the error that the direct call would have returned
	Echo() any        // the Echo of the request
	isResponse()
}

// Outcome classifies the result of a request.
type Outcome int

// The outcomes. Response.Err has the details.
const (
	Success  Outcome = iota
	NotFound         // of Get: ErrNotFound
	Buried           // ErrDeleted: the entry was permanently deleted
	// Refused is ErrModify: the function rejected the update or panicked. Nothing has changed; see
	// ModifyError.
	Refused
	// NotReached is ErrQuorum or ErrStore. A write is kept here and continues to spread; see
	// QuorumError.
	NotReached
	Unclear // ErrUnknown: the operation may have happened
	// Failed says that nothing was done: ErrInvalid, ErrType, ErrLimit, ErrClosed, ErrBetweenLives,
	// ErrLoading, ErrStoreBusy, or a value that cannot be decoded.
	Failed
)

var outcomes = [...]string{"success", "not found", "buried", "refused", "not reached",
	"unclear", "failed"}

// String returns the outcome in words.
func (o Outcome) String() string {
	if o < 0 || int(o) >= len(outcomes) {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return outcomes[o]
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

// Outcome implements Response.
func (a *answer) Outcome() Outcome { return outcomeOf(a.err) }

// outcomeOf returns the Outcome for an error of an operation.
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

// Value returns the value in the response to a Get or an Update of this key. ok is false for any
// other response, and for one without a value.
func (k Key[T]) Value(r Response) (v T, ok bool) {
	if r.ID() == k.id && r.Err() == nil {
		switch m := r.(type) {
		case *GetResponse[T]:
			return m.value, true
		case *UpdateResponse[T]:
			return m.value, true
		}
	}
	return k.empty(), false
}
