package simnet

import (
	"reflect"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// workers runs the mailboxes of all systems of a network, each run in a goroutine of its own as Proto.Actor's
// dispatcher does, but in one that has run others before: a new goroutine for each message would spend most
// of its time growing its stack.
type workers struct {
	mu   sync.Mutex
	idle []chan func() // the last is the one that ended last
	over bool
}

// throughput is that of Proto.Actor's dispatcher: messages of one actor in a row.
const throughput = 300

// Throughput implements actor.Dispatcher.
func (*workers) Throughput() int { return throughput }

// Schedule implements actor.Dispatcher.
func (w *workers) Schedule(fn func()) {
	w.mu.Lock()
	n := len(w.idle) - 1
	if n < 0 {
		w.mu.Unlock()
		go w.work(fn)
		return
	}
	free := w.idle[n]
	w.idle = w.idle[:n]
	w.mu.Unlock()
	free <- fn
}

func (w *workers) work(fn func()) {
	jobs := make(chan func(), 1)
	for more := true; more; fn, more = <-jobs {
		fn()
		w.mu.Lock()
		if w.over {
			w.mu.Unlock()
			return
		}
		w.idle = append(w.idle, jobs)
		w.mu.Unlock()
	}
}

// close lets idle goroutines end, and others when they are done.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, jobs := range w.idle {
		close(jobs)
	}
	w.idle = nil
}

// employ lets w run every actor that is spawned by way of system.Root and has no dispatcher of its own.
// Children run as Proto.Actor runs them.
func (w *workers) employ(system *actor.ActorSystem) {
	plain := system.Root.Copy() // also since its middleware would lose the guardian of props
	system.Root.WithSpawnMiddleware(func(actor.SpawnFunc) actor.SpawnFunc {
		return func(_ *actor.ActorSystem, name string, props *actor.Props, _ actor.SpawnerContext) (*actor.PID, error) {
			if !dispatched(props) {
				props = props.Clone(actor.WithDispatcher(w))
			}
			return plain.SpawnNamed(props, name)
		}
	})
}

// dispatched tells whether props name a dispatcher.
func dispatched(props *actor.Props) bool {
	f := reflect.ValueOf(props).Elem().FieldByName("dispatcher")
	return f.IsValid() && !f.IsNil()
}
