package contain

import (
	"log/slog"
	"sync"
	"time"
)

// patience is how long a function of the application runs before operators are told.
const patience = 10 * time.Second

// Blocking tells operators of functions of the application that do not return: in one line, until
// all that are late have returned. The zero value is ready to use.
type Blocking struct {
	mu   sync.Mutex
	late int // functions that have run for longer than patience
}

// Begin is called before the function that does what. Its result is called after it, once. It calls
// log if there is something to say.
func (b *Blocking) Begin(log func() *slog.Logger, what, then string) (end func()) {
	var over, late bool
	timer := time.AfterFunc(patience, func() {
		b.mu.Lock()
		if late = !over; late {
			b.late++
		}
		first := late && b.late == 1
		b.mu.Unlock()
		if first {
			log().Warn("a function of the application does not return", slog.String("what", what),
				slog.Duration("for", patience), slog.String("then", then), slog.String("check",
					"what it waits for; such a function should give up by itself"))
		}
	})
	return func() {
		timer.Stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		if over = true; late {
			b.late--
		}
	}
}
