package lifecycle

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

type check struct {
	name string
	ok   func() error
}

// OnCheck registers ok, which tells whether a component can be used now: nil, or why not. It must not block.
func OnCheck(system *actor.ActorSystem, name string, ok func() error) {
	h := Of(system)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.checks = append(h.mu.checks, check{name, ok})
}

// Check asks every component and returns every error, with the component's name. A panic counts as an error.
func (h *Hooks) Check() error {
	h.mu.Lock()
	checks := append([]check(nil), h.mu.checks...)
	h.mu.Unlock()
	var errs []error
	for _, c := range checks {
		if err := c.call(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	return errors.Join(errs...)
}

func (c check) call() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return c.ok()
}
