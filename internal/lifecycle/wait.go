package lifecycle

import (
	"context"
	"sync"
)

// Wait waits until the count of wg is zero or ctx ends, and returns the cause of ctx in the latter
// case. Its goroutine ends with wg.
func Wait(ctx context.Context, wg *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() {
		wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
