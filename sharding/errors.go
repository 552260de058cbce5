package sharding

import (
	"errors"

	"github.com/concord-go/concord/internal/lifecycle"
)

// Errors of this package. Ask and Tell return them as they are or wrapped; test with errors.Is.
var (
	// ErrUndelivered: the message certainly did not reach the entity.
	ErrUndelivered = errors.New("sharding: message not delivered")
	// ErrBufferFull: Config.Buffer messages wait at this member already, or an eighth of that for the shard. It is
	// ErrUndelivered.
	ErrBufferFull error = &undelivered{"sharding: buffer full"}
	// ErrNotProtobuf: the entity is at another member, and the message is no protobuf message, so it cannot get there. It
	// is ErrUndelivered.
	ErrNotProtobuf error = &undelivered{"sharding: not a protobuf message, and the entity is at another member"}
	// ErrTooLarge: the entity is at another member, and the message is too large to get there. It is ErrUndelivered.
	ErrTooLarge error = &undelivered{"sharding: message too large, and the entity is at another member"}
	// ErrUnknown: the context ended before there was an answer; it wraps the cause. The message may have been handled,
	// may still be, or never.
	ErrUnknown = errors.New("sharding: outcome unknown")
	// ErrClosed: this member has closed the region, or was removed from the cluster for good. The message was not sent.
	ErrClosed = errors.New("sharding: not running at this member")
	// ErrBetweenLives: this member was split off from its cluster and has not joined again before the context ended; it
	// wraps the cause. The message was not sent.
	ErrBetweenLives = lifecycle.ErrBetweenLives
	// ErrInvalid: a configuration or an argument that cannot be used; the text says why.
	ErrInvalid = errors.New("sharding: invalid argument")
)

type undelivered struct{ text string }

func (e *undelivered) Error() string { return e.text }

// Unwrap makes it ErrUndelivered.
func (e *undelivered) Unwrap() error { return ErrUndelivered }
