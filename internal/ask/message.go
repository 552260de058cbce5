package ask

import (
	"errors"

	"google.golang.org/protobuf/proto"
)

// IsNil reports whether a message is nil or a nil pointer, which would arrive as nil at an actor of
// this member and as an empty message at those of others.
func IsNil(m proto.Message) bool { return m == nil || !m.ProtoReflect().IsValid() }

// Reasons of a message that was not sent before its context ended.
var (
	errNotSent = errors.New("not sent")
	errNotUp   = errors.New("this member is not up")
)

// Unsent returns why a message was not sent before its context ended. running is closed when the
// member is up.
func Unsent(running <-chan struct{}) error {
	select {
	case <-running:
		return errNotSent
	default:
		return errNotUp
	}
}
