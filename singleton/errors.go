package singleton

import (
	"errors"
	"fmt"
)

// Errors of this package. Ask returns them directly or wrapped; test with errors.Is.
var (
	// ErrUndelivered means that the message certainly did not reach the instance: there was no room
	// for it where it had to wait, or the member to which it was sent could not take it then.
	ErrUndelivered = errors.New("singleton: message not delivered")
	// ErrBufferFull means that Config.Buffer messages already wait at this member. It wraps
	// ErrUndelivered.
	ErrBufferFull error = &undelivered{"singleton: buffer full"}
	// ErrUnknown means that the context ended before there was an answer, and then wraps its cause,
	// or that the host to which the message was sent is gone. The instance may have handled the
	// message, may still handle it, or may never do so.
	ErrUnknown = errors.New("singleton: outcome unknown")
	// ErrClosed means that this member has closed the singleton, or was removed from the cluster
	// for good. The message was not sent.
	ErrClosed = errors.New("singleton: not running at this member")
	// ErrInvalid means that a configuration or an argument is invalid; the text says why.
	ErrInvalid = errors.New("singleton: invalid argument")
)

var errUnmade = fmt.Errorf("%w: the singleton is nil, or neither New nor NewProxy has made it",
	ErrInvalid)

var errNoSystem = fmt.Errorf("%w: no actor system", ErrInvalid)

// errNotProtobuf is the reason of a message to the PID.
var errNotProtobuf = errors.New(
	"singleton: not a protobuf message, and the instance is at another member")

// errStopped is the reason of messages that wait when this member stops.
var errStopped = fmt.Errorf("%w: this member stops before there was a host", ErrUndelivered)

type undelivered struct{ text string }

func (e *undelivered) Error() string { return e.text }

// Unwrap returns ErrUndelivered.
func (e *undelivered) Unwrap() error { return ErrUndelivered }
