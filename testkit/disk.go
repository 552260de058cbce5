package testkit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/distributeddata/store"
)

// Disk is a disk in memory, with stores on it. It knows what was synced and what was only written: a crash
// keeps the first, and of the second as many batches as chance wants, in order. NewDisk makes one; every
// machine of a cluster has one, Member.Disk, that survives crash and restart.
//
// It is for use in a bubble, or with faults that take no time.
type Disk struct {
	note func(format string, args ...any)

	mu struct {
		sync.Mutex
		random  *rand.Rand
		faults  DiskFaults
		once    []*diskOnce
		volumes map[string]*volume
		stats   DiskStats
		frozen  chan struct{} // closed on thaw; nil: not frozen
	}
}

// DiskFaults of a disk. The zero value is none.
type DiskFaults struct {
	// Delay is how long a sync takes.
	Delay time.Duration
	// FailSync lets syncs fail: the store fails, and what was written is lost or kept by the next crash or
	// Close like anything that was not synced.
	FailSync bool
	// Full lets commits end with store.ErrFull.
	Full bool
}

// DiskCommit is one commit of a store on a disk.
type DiskCommit struct {
	Store string
	Batch *store.Batch
}

// DiskStats counts what a disk has done.
type DiskStats struct {
	Commits int // acknowledged
	Syncs   int // one may serve several commits
	Lost    int // batches written and not synced that a crash has taken
	Torn    int // of these, found half written by the next opener, which dropped them
	Corrupt int // rows that Flip has changed
}

type diskOnce struct {
	match  func(DiskCommit) bool
	faults DiskFaults
	hit    atomic.Bool
}

// volume is what the disk holds of one store.
type volume struct {
	rows    map[string]cell
	written []*write // not synced, in order
	torn    bool     // ends with half a batch
	opener  *DiskStore
}

// cell is a row; the value is never written to.
type cell struct {
	value   []byte
	flipped bool
}

// write is a batch on its way to the disk.
type write struct {
	ops    []store.Op
	synced bool
}

// NewDisk returns an empty disk; the seed decides what a crash keeps.
func NewDisk(seed uint64) *Disk {
	d := &Disk{note: func(string, ...any) {}}
	d.mu.random = rand.New(rand.NewPCG(seed, 0))
	d.mu.volumes = map[string]*volume{}
	return d
}

// Set replaces the faults.
func (d *Disk) Set(f DiskFaults) {
	d.note("%+v", f)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.faults = f
}

// Next gives the next commit for which match is true these faults, and only it. nil matches every commit.
// hit tells whether there has been one. match must not use the disk.
func (d *Disk) Next(match func(DiskCommit) bool, f DiskFaults) (hit func() bool) {
	d.note("for one commit %+v", f)
	o := &diskOnce{match: match, faults: f}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.once = append(d.mu.once, o)
	return o.hit.Load
}

// Flip changes a bit of a row on the disk, as disks do in silence. The store finds that out by its checksum.
// It reports whether there is such a row.
func (d *Disk) Flip(name, key string) bool {
	d.note("flip a bit of row %q of store %q", key, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.mu.volumes[name]
	if v == nil {
		return false
	}
	c, ok := v.rows[key]
	if ok {
		c.flipped = true
		v.rows[key] = c
		d.mu.stats.Corrupt++
	}
	return ok
}

// Stats returns the counters.
func (d *Disk) Stats() DiskStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.stats
}

// Crash ends all stores as a loss of power does. Calls under way and later ones return store.ErrClosed.
// Member.Crash does it.
func (d *Disk) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range sortedKeys(d.mu.volumes) {
		if v := d.mu.volumes[name]; v.opener != nil {
			v.opener.endLocked(true)
		}
	}
}

// Open opens the store of that name, and makes it at the first time. It returns store.ErrLocked while it is
// open elsewhere.
func (d *Disk) Open(name string) (*DiskStore, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.mu.volumes[name]
	if v == nil {
		v = &volume{rows: map[string]cell{}}
		d.mu.volumes[name] = v
	}
	if v.opener != nil {
		return nil, fmt.Errorf("store %q: %w", name, store.ErrLocked)
	}
	if v.torn {
		v.torn = false
		d.mu.stats.Torn++
	}
	v.opener = &DiskStore{disk: d, name: name, on: v, turn: make(chan struct{}, 1), end: make(chan struct{})}
	return v.opener, nil
}

// lose decides what a crash leaves of what was not synced: the first batches, and half of the next.
func (d *Disk) loseLocked(v *volume) {
	kept := d.mu.random.IntN(len(v.written) + 1)
	for _, w := range v.written[:kept] {
		v.apply(w.ops)
	}
	if kept < len(v.written) {
		d.mu.stats.Lost += len(v.written) - kept
		v.torn = d.mu.random.IntN(2) == 0
	}
	v.written = nil
}

func (v *volume) apply(ops []store.Op) {
	for _, o := range ops {
		if o.Delete {
			delete(v.rows, o.Key)
		} else {
			v.rows[o.Key] = cell{value: o.Value}
		}
	}
}

// sync makes everything that is written safe.
func (d *Disk) syncLocked(v *volume) {
	for _, w := range v.written {
		v.apply(w.ops)
		w.synced = true
	}
	v.written = nil
	d.mu.stats.Syncs++
}

func (d *Disk) faultsForLocked(c DiskCommit) DiskFaults {
	for i, o := range d.mu.once {
		if o.match == nil || o.match(c) {
			d.mu.once = slices.Delete(d.mu.once, i, i+1)
			o.hit.Store(true)
			return o.faults
		}
	}
	return d.mu.faults
}

func (d *Disk) heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.faults, d.mu.once = DiskFaults{}, nil
}

func (d *Disk) freeze() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.frozen == nil {
		d.mu.frozen = make(chan struct{})
	}
}

func (d *Disk) thaw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.frozen != nil {
		close(d.mu.frozen)
		d.mu.frozen = nil
	}
}

func (d *Disk) frozen() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.frozen
}

// errSync is why a store on a disk has failed.
var errSync = errors.New("testkit: sync failed")
