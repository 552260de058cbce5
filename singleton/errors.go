package singleton

import (
	"errors"

	"github.com/concord-go/concord/internal/lifecycle"
)

// Errors of this package. Ask returns them as they are or wrapped; test with errors.Is.
var (
	// ErrUndelivered: the message certainly did not reach the instance. There was no room for it where it
	// had to wait, or the member to which it was sent was not, or no longer, able to take it.
	ErrUndelivered = errors.New("singleton: message not delivered")
	// ErrBufferFull: Config.Buffer messages wait at this member already. It is ErrUndelivered.
	ErrBufferFull error = &undelivered{"singleton: buffer full"}
	// ErrNotProtobuf: the instance is at another member, and the message is no protobuf message, so it
	// cannot get there. It is ErrUndelivered.
	ErrNotProtobuf error = &undelivered{"singleton: not a protobuf message, and the instance is at another member"}
	// ErrUnknown: the context ended before there was an answer; it wraps the cause. Or the host to which
	// the message was sent is gone. The message may have been handled, may still be, or never.
	ErrUnknown = errors.New("singleton: outcome unknown")
	// ErrClosed: this member has closed the singleton, or was removed from the cluster for good. The
	// message was not sent.
	ErrClosed = errors.New("singleton: not running at this member")
	// ErrBetweenLives: this member was split off from its cluster and has not joined again before the
	// context ended; it wraps the cause. The message was not sent.
	ErrBetweenLives = lifecycle.ErrBetweenLives
	// ErrInvalid: a configuration or an argument that cannot be used; the text says why.
	ErrInvalid = errors.New("singleton: invalid argument")
)

type undelivered struct{ text string }

func (e *undelivered) Error() string { return e.text }

// Unwrap makes it ErrUndelivered.
func (e *undelivered) Unwrap() error { return ErrUndelivered }
