package sharding

import (
	"fmt"
	"sync/atomic"
	"time"
)

// extractor calls Config.Extractor and guards against its misbehavior.
type extractor struct {
	extract func(message any) string
	overdue atomic.Int32 // calls that have not returned within extractWithin
}

// A call may take extractWithin. While maxOverdue calls take longer, no further call is made.
const (
	extractWithin = time.Second
	maxOverdue    = 16
)

// id returns the id of the entity that a message is for. The function runs in its own goroutine,
// which costs some microseconds: the goroutine of the caller may be the one that reads the messages
// of another member, which must neither end nor block.
func (x *extractor) id(message any) (string, error) {
	if x == nil {
		return "", fmt.Errorf("%w: no Extractor is set for a %T without an *Envelope", ErrInvalid,
			message)
	}
	if err := checkMessage(message); err != nil {
		return "", err
	}
	if n := x.overdue.Load(); n >= maxOverdue {
		return "", fmt.Errorf("%w: %d calls of Extractor have not returned within %v", ErrInvalid,
			n, extractWithin)
	}
	answer := make(chan extracted, 1)
	go x.call(message, answer)
	t := time.NewTimer(extractWithin)
	defer t.Stop()
	select {
	case a := <-answer:
		return a.id, a.err
	case <-t.C:
	}
	x.overdue.Add(1)
	go func() {
		<-answer
		x.overdue.Add(-1)
	}()
	return "", fmt.Errorf("%w: Extractor has not returned within %v for a %T", ErrInvalid,
		extractWithin, message)
}

type extracted struct {
	id  string
	err error
}

// call sends exactly one answer, whatever the function does.
func (x *extractor) call(message any, answer chan<- extracted) {
	a := extracted{err: fmt.Errorf("%w: Extractor ended its goroutine for a %T", ErrInvalid,
		message)}
	defer func() {
		if p := recover(); p != nil {
			a.err = fmt.Errorf("%w: Extractor panicked for a %T: %v", ErrInvalid, message, p)
		}
		answer <- a
	}()
	a.id = x.extract(message)
	a.err = nil
}

// RefFor returns a reference to the entity that Config.Extractor names for msg. The error matches
// ErrInvalid if there is no Extractor, or if it panics, ends its goroutine, takes longer than a
// second or names no entity.
func (r *Region[Msg]) RefFor(msg Msg) (Ref[Msg], error) {
	if r == nil || r.region == nil {
		return Ref[Msg]{}, errUnmade
	}
	id, err := r.extractor.Load().id(msg)
	if err == nil {
		err = checkID(id)
	}
	return Ref[Msg]{r.region, id}, err
}
