package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/node"
)

const (
	nodeCount     = 3
	parallel      = 128              // number of carts that each node processes concurrently
	eventPatience = 30 * time.Second // for one event, including all attempts
)

// shopkeeper drives the cluster: it starts the nodes, sends each its carts, and triggers the fault.
type shopkeeper struct {
	dir     string
	ports   []int
	verbose bool
	durable bool
	ui      bool
	orders  io.Reader // for faults on demand, with ui; nil: none
	say     *screen
	nodes   [nodeCount]seat
	links   links

	done    atomic.Int64
	retries atomic.Int64
	mu      sync.Mutex
	numbers map[string]int64 // of orders, as acknowledged
	lost    uint64           // bytes sent by processes that have exited
}

// seat is the place of a node, at which one process runs after another.
type seat struct {
	name string
	tls  *node.TLS // nil: no TLS
	mu   sync.Mutex
	now  *process      // may have exited
	next chan struct{} // closed when another process has replaced now
}

func (s *seat) get() (*process, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.next
}

func (s *seat) put(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
	}
	s.now, s.next = p, make(chan struct{})
}

func newShopkeeper(say *screen, f flags) (*shopkeeper, error) {
	dir, err := os.MkdirTemp("", "concord-quickstart-")
	if err != nil {
		return nil, err
	}
	k := &shopkeeper{dir: dir, verbose: f.verbose, durable: f.durable, ui: f.ui, say: say,
		numbers: map[string]int64{}}
	if f.events != "-" {
		k.orders = os.Stdin
	}
	for i := range k.nodes {
		k.nodes[i].name = fmt.Sprint("node ", i+1)
	}
	if k.ports, err = freePorts(3 * nodeCount); err != nil {
		return k, err
	}
	if f.tls {
		if err := k.certify(); err != nil {
			return k, err
		}
	}
	return k, k.links.lay(k.ports)
}

// start starts a node in seat i and returns when it is ready.
func (k *shopkeeper) start(ctx context.Context, i int) error {
	cfg := nodeConfig{Name: k.nodes[i].name, Port: k.ports[nodeCount+i], Provider: k.ports[i],
		LeaseDir: filepath.Join(k.dir,
			"leases"), Verbose: k.verbose, Nodes: nodeCount, TLS: k.nodes[i].tls,
		Cockpits: k.cockpits(i)}
	cfg.Providers, cfg.Via = k.links.via(i, k.ports)
	if k.durable {
		cfg.DataDir = filepath.Join(k.dir, fmt.Sprint("data-", i+1))
	}
	p, err := startProcess(cfg)
	if err != nil {
		return err
	}
	if err := p.await(ctx); err != nil {
		p.kill()
		return fmt.Errorf("%s did not start: %w", k.nodes[i].name, err)
	}
	k.nodes[i].put(p)
	return nil
}

// open starts all nodes concurrently.
func (k *shopkeeper) open(ctx context.Context) error {
	var errs [nodeCount]error
	var wg sync.WaitGroup
	for i := range k.nodes {
		wg.Go(func() { errs[i] = k.start(ctx, i) })
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// close stops every process and removes their files. If orderly is set, the nodes leave the cluster
// first.
func (k *shopkeeper) close(orderly bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	if !orderly {
		cancel()
	}
	var wg sync.WaitGroup
	for i := range k.nodes {
		if p, _ := k.nodes[i].get(); p != nil {
			wg.Go(func() { p.stop(ctx) })
		}
	}
	wg.Wait()
	_ = os.RemoveAll(k.dir)
}

// serve sends the events: those of one cart in order, through one node, which need not be the one
// that the cart is on, and those of different carts concurrently.
func (k *shopkeeper) serve(ctx context.Context, events []event) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for i, queue := range k.deal(events) {
		work := make(chan []numbered, len(queue))
		for _, c := range queue {
			work <- c
		}
		close(work)
		for range parallel {
			wg.Go(func() {
				for c := range work {
					if err := k.serveCart(ctx, &k.nodes[i], c); err != nil {
						cancel(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}

// deal groups the events by cart and numbers them, and groups the carts by the node that sends
// their events. Checkouts are for the clerk, and have no number.
func (k *shopkeeper) deal(events []event) (queues [nodeCount][][]numbered) {
	byCart, last := map[string][]numbered{}, map[string]uint64{}
	for _, e := range events {
		n := numbered{event: e}
		if e.Op != "checkout" {
			last[e.Cart]++
			n.Nr = last[e.Cart]
		}
		byCart[e.Cart] = append(byCart[e.Cart], n)
	}
	for _, name := range slices.Sorted(maps.Keys(byCart)) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(name))
		i := h.Sum32() % nodeCount
		queues[i] = append(queues[i], byCart[name])
	}
	return queues
}

func (k *shopkeeper) serveCart(ctx context.Context, at *seat, events []numbered) error {
	for _, e := range events {
		a, err := k.insist(ctx, at, e)
		if err != nil {
			return fmt.Errorf("%s %s of cart %q: %w", at.name, e.Op, e.Cart, err)
		}
		if e.Op == "checkout" {
			if err := k.acknowledged(e.ID, a.Number); err != nil {
				return err
			}
		}
		k.done.Add(1)
	}
	return nil
}

// insist repeats an event until it is acknowledged. An event that a killed node has started may or
// may not have taken effect; its number, or the id of the order, makes it harmless to repeat it.
func (k *shopkeeper) insist(ctx context.Context, at *seat, e numbered) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	for ctx.Err() == nil {
		p, next := at.get()
		if a, err = p.call(ctx, command{Event: &e}); err == nil {
			return a, nil
		}
		k.retries.Add(1)
		if errors.Is(err, errGone) {
			select {
			case <-next: // the node has been restarted
			case <-ctx.Done():
			}
			continue
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return a, errors.Join(context.Cause(ctx), err)
}

// acknowledged records the number of an order. An order must never get a second number.
func (k *shopkeeper) acknowledged(id string, number int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.numbers[id]; old != 0 && old != number {
		return fmt.Errorf("order %q was number %d, and then %d", id, old, number)
	}
	k.numbers[id] = number
	return nil
}

// statuses requests the status of every node; it is nil for a node that does not answer.
func (k *shopkeeper) statuses(ctx context.Context) (out [nodeCount]*status) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var all sync.WaitGroup
	for i := range k.nodes {
		if p, _ := k.nodes[i].get(); p != nil {
			all.Go(func() { // a frozen node does not answer
				if a, err := p.call(ctx, command{Ask: "status"}); err == nil {
					out[i] = a.Status
				}
			})
		}
	}
	all.Wait()
	return out
}

// host returns the seat of the node that hosts the clerk under a token above after, or -1.
func (k *shopkeeper) host(ctx context.Context, after uint64) (seat int, token uint64) {
	all := k.statuses(ctx)
	for i, s := range all {
		if s != nil && s.Clerk != "" && s.Clerk == s.Address && s.Token > after {
			return i, s.Token
		}
	}
	return -1, 0
}

// dumps reads the state of every node once check accepts all of them, or after some seconds if it
// still does not.
func (k *shopkeeper) dumps(ctx context.Context,
	check func([]result) error) (all []result, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		all = nil
		for i := range k.nodes {
			p, _ := k.nodes[i].get()
			a, err := p.call(ctx, command{Ask: "dump"})
			if err != nil {
				return all, fmt.Errorf("reading %s: %w", k.nodes[i].name, err)
			}
			all = append(all, *a.Dump)
		}
		if err = check(all); err == nil || pause(ctx, 200*time.Millisecond) != nil {
			return all, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
