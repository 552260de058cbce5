package distributeddata

import (
	"runtime"
	"sync"
)

// pinnedDispatcher is the dispatcher of one mailbox, which runs on one goroutine for as long as its
// actor lives. With Proto.Actor's own dispatcher, each run of the mailbox has a new goroutine,
// whose stack has to grow again in the middle of an update. An actor whose goroutine has exited by
// runtime.Goexit would never run again.
//
// If a goroutine exits by Goexit, the next one starts with the runs that it left. A mailbox has one
// scheduled run at a time, and may schedule the next while the current one returns.
type pinnedDispatcher struct {
	number number          // written into the call stack
	ended  <-chan struct{} // closed when the actor has stopped
	runs   chan func()     // buffered for one run, so that sending never blocks

	mu struct {
		sync.Mutex
		alive bool // a goroutine serves runs
		over  bool // no goroutine will serve runs any more
	}
}

func newPinnedDispatcher(n number, ended <-chan struct{}) *pinnedDispatcher {
	return &pinnedDispatcher{number: n, ended: ended, runs: make(chan func(), 1)}
}

// Throughput implements actor.Dispatcher.
func (d *pinnedDispatcher) Throughput() int { return throughput }

// Schedule implements actor.Dispatcher. A run that is scheduled for a stopped actor turns the
// actor's messages into dead letters; it gets a goroutine of its own.
func (d *pinnedDispatcher) Schedule(run func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.over {
		go run()
		return
	}
	d.runs <- run
	if !d.mu.alive {
		d.mu.alive = true
		go d.start()
	}
}

// start is the body of a goroutine that serves the mailbox.
func (d *pinnedDispatcher) start() {
	room()
	d.number.run(d.serve)
}

func (d *pinnedDispatcher) serve() {
	for {
		select {
		case run := <-d.runs:
			d.once(run)
		case <-d.ended:
			d.end()
			return
		}
	}
}

// once runs the mailbox, and hands it to another goroutine if this one exits.
func (d *pinnedDispatcher) once(run func()) {
	returned := false
	defer func() {
		if !returned {
			d.runs <- run // there is room: no other run is scheduled
			go d.start()
		}
	}()
	run()
	returned = true
}

// end runs anything scheduled now or later on separate goroutines.
func (d *pinnedDispatcher) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.over = true
	select {
	case run := <-d.runs:
		go run()
	default:
	}
}

// room grows the stack of a new goroutine to the size that an update needs while the stack is
// empty. Growing it in the middle of an update, frame by frame, took 40 % of the time of a local
// update.
//
//go:noinline
func room() {
	var frame [7 << 10]byte
	runtime.KeepAlive(&frame)
}
