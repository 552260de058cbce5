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

// OnCheck registers ok, which returns nil if a component is usable now, or the reason why it is
// not. It must not block.
func OnCheck(system *actor.ActorSystem, name string, ok func() error) {
	h := Of(system)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.checks = append(h.mu.checks, check{name, ok})
}

// Check calls every registered check and returns all errors, with the names of the components. A
// panic counts as an error.
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
