package node

import (
	"errors"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
)

var (
	// ErrInvalid is matched by every error of Config.Validate and RunConfig.Validate, and by those of Start
	// about its cluster.
	ErrInvalid = errors.New("node: invalid configuration")
	// ErrStarted is returned by Start when the member has been started before, successfully or not: a
	// cluster cannot be started twice. Make a new actor system.
	ErrStarted = errors.New("node: started before")
	// ErrStart is matched when Proto.Actor could not start the member: the port is taken, or the provider
	// cannot be reached. Shutdown still has to be called.
	ErrStart = errors.New("node: member not started")
	// ErrNotReady is matched when a member has started, and its context ended before it was ready. The error
	// says what it waited for, and which members it saw.
	ErrNotReady = errors.New("node: member not ready")
	// ErrStop is matched by the error of Run when the last life did not stop in order, for instance because a
	// component overran its time. Leases that were not released expire by themselves.
	ErrStop = errors.New("node: not stopped in order")
	// ErrSplit is returned by Run when the member was split off and OnSplit is Exit.
	ErrSplit = errors.New("node: split off from the cluster")
)

// Causes for which a life of a member ends although nobody stopped it: see Removed, Why and Node.Context. The
// process can join again with another life: Run does that by itself.
var (
	// ErrRemoved is matched by all of them.
	ErrRemoved = membership.ErrRemoved
	// ErrDropped: the member's own provider does not list it any more.
	ErrDropped = membership.ErrDropped
	// ErrExpelled: most members that it lists do not list it.
	ErrExpelled = membership.ErrExpelled
	// ErrGaveWay: the cluster was split, and this member gives way to another fragment.
	ErrGaveWay = membership.ErrGaveWay
)

// ErrBetweenLives is matched by the error of a call whose context ended while its member had left one life and
// not begun the next. Nothing was done.
var ErrBetweenLives = lifecycle.ErrBetweenLives
