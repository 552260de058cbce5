package distributeddata

import (
	"runtime"
	"sync"
)

// steadfast is the dispatcher of one mailbox, which runs on one goroutine for as long as its actor lives. With
// Proto.Actor's own, each run of the mailbox has a new goroutine, whose stack grows anew in the middle of an update,
// and an actor whose goroutine has ended by runtime.Goexit never runs again.
//
// Each goroutine begins with the runs that the one before it, which ended by Goexit, has left. A mailbox has one
// run scheduled at a time, and may schedule the next while that one returns.
type steadfast struct {
	number number          // written into the call stack
	ended  <-chan struct{} // closed when the actor has stopped
	runs   chan func()     // of one run, so that it never blocks

	mu struct {
		sync.Mutex
		alive bool // a goroutine serves runs
		over  bool // and none will
	}
}

func newSteadfast(n number, ended <-chan struct{}) *steadfast {
	return &steadfast{number: n, ended: ended, runs: make(chan func(), 1)}
}

// Throughput implements actor.Dispatcher.
func (d *steadfast) Throughput() int { return throughput }

// Schedule implements actor.Dispatcher. What is scheduled for a stopped actor, to make dead letters of its messages,
// runs on a goroutine of its own.
func (d *steadfast) Schedule(run func()) {
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

// start begins a goroutine.
func (d *steadfast) start() {
	room()
	d.number.run(d.serve)
}

func (d *steadfast) serve() {
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

// once runs the mailbox, and hands it to another goroutine if this one ends.
func (d *steadfast) once(run func()) {
	returned := false
	defer func() {
		if !returned {
			d.runs <- run // no other is scheduled: the mailbox still counts as running
			go d.start()
		}
	}()
	run()
	returned = true
}

// end leaves what is scheduled now and later to goroutines of its own.
func (d *steadfast) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.over = true
	select {
	case run := <-d.runs:
		go run()
	default:
	}
}

// room makes the stack of a new goroutine as large as an update needs it, while it is empty: to grow it in the middle
// of one, frame by frame, took 40 % of the time of a local update.
//
//go:noinline
func room() {
	var frame [7 << 10]byte
	runtime.KeepAlive(&frame)
}
