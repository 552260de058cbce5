package simnet

import (
	"reflect"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// workers runs the mailboxes of all systems of a network. Like Proto.Actor's dispatcher it runs
// each in its own goroutine, but it reuses goroutines: a new goroutine for each message would spend
// most of its time growing its stack.
type workers struct {
	mu   sync.Mutex
	idle []chan func() // the last one became idle last
	over bool
}

// throughput is the value of Proto.Actor's dispatcher: the number of consecutive messages of one
// actor.
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

// close lets idle goroutines end, and busy ones when they are done.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, jobs := range w.idle {
		close(jobs)
	}
	w.idle = nil
}

// employ makes w run every actor that is spawned through system.Root without a dispatcher. Children
// run as in Proto.Actor.
func (w *workers) employ(system *actor.ActorSystem) {
	plain := system.Root.Copy() // also because its middleware would drop the guardian of props
	system.Root.WithSpawnMiddleware(func(actor.SpawnFunc) actor.SpawnFunc {
		return func(_ *actor.ActorSystem, name string, props *actor.Props,
			_ actor.SpawnerContext) (*actor.PID, error) {
			if !dispatched(props) {
				props = props.Clone(actor.WithDispatcher(w))
			}
			return plain.SpawnNamed(props, name)
		}
	})
}

// dispatched reports whether props have a dispatcher.
func dispatched(props *actor.Props) bool {
	f := reflect.ValueOf(props).Elem().FieldByName("dispatcher")
	return f.IsValid() && !f.IsNil()
}
