package sharding

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// contained calls a function of the application, which may panic or end its goroutine, and returns
// that as an error.
func contained(do func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = errors.New("it ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("it panicked: %v\n%s", p, debug.Stack())
			}
		}()
		err = do()
	}()
	<-done
	return err
}
