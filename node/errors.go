package node

import "errors"

var (
	// ErrInvalid is matched by every error of Config.Validate, and by those of Start about its cluster.
	ErrInvalid = errors.New("node: invalid configuration")
	// ErrStarted is returned by Start when the member has been started before, successfully or not: a
	// cluster cannot be started twice. Make a new actor system.
	ErrStarted = errors.New("node: started before")
	// ErrStart is matched when Proto.Actor could not start the member: the port is taken, or the provider
	// cannot be reached. Shutdown still has to be called.
	ErrStart = errors.New("node: member not started")
	// ErrRemoved is matched by Start when the member was expelled before it was ready.
	ErrRemoved = errors.New("node: member removed from its cluster")
)
