package sharding

import (
	"errors"
	"fmt"
)

// Errors of this package. Ask and Tell return them directly or wrapped; test with errors.Is.
var (
	// ErrUndelivered means that the message certainly did not reach the entity; the text says why.
	// One reason is that the entity is on another member and the message has more than 4,000,000
	// bytes, encoded, or 4,149,984 with its header and names.
	ErrUndelivered = errors.New("sharding: message not delivered")
	// ErrBufferFull means that the messages that wait at this member have reached Config.Buffer or
	// Config.BufferBytes, or those for the shard an eighth of it. It matches ErrUndelivered.
	ErrBufferFull error = &undelivered{"sharding: buffer full"}
	// ErrUnknown means that the context ended before there was an answer, and then wraps its cause,
	// or that the host to which the message was sent is gone. The message may have been handled,
	// may be handled later, or never.
	ErrUnknown = errors.New("sharding: outcome unknown")
	// ErrClosed means that this member has closed the region or was permanently removed from the
	// cluster. The message was not sent.
	ErrClosed = errors.New("sharding: not running at this member")
	// ErrInvalid means that a configuration or an argument is invalid; the text says why.
	ErrInvalid = errors.New("sharding: invalid argument")
)

// Reasons of a message that did not reach its entity.
var (
	errTooLarge error = &undelivered{
		"sharding: message too large, and the entity is at another member"}
	errRejected = fmt.Errorf("%w: the entity failed too often, has too many messages waiting, or "+
		"its shard has ended", ErrUndelivered)
	errRefused = fmt.Errorf("%w: the log of the member that refused it has the reason",
		ErrUndelivered)
	errStopped = fmt.Errorf("%w: this member stops before the shard had a host", ErrUndelivered)
)

type undelivered struct{ text string }

func (e *undelivered) Error() string { return e.text }

// Unwrap makes the error match ErrUndelivered.
func (e *undelivered) Unwrap() error { return ErrUndelivered }
