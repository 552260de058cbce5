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

// Disk is an in-memory disk that holds stores. It distinguishes synced data from data that was only
// written: a crash keeps all synced batches and a random number of the unsynced ones, in order.
// NewDisk creates a Disk. Every machine of a cluster has one, Member.Disk, which survives crashes
// and restarts.
//
// Use a Disk in a bubble, or with faults that take no time.
type Disk struct {
	note func(format string, args ...any)

	mu struct {
		sync.Mutex
		random  *rand.Rand
		faults  DiskFaults
		once    []*diskOnce
		volumes map[string]*volume
		stats   DiskStats
		frozen  chan struct{} // closed on thaw; nil if not frozen
	}
}

// DiskFaults are the faults of a disk. The zero value has no faults.
type DiskFaults struct {
	// Delay is the duration of a sync.
	Delay time.Duration
	// FailSync makes syncs fail. The store then fails too, and the next crash or Close loses or
	// keeps the written data like any unsynced data.
	FailSync bool
	// Full makes commits return store.ErrFull.
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
	Syncs   int // one sync may serve several commits
	Lost    int // batches written but not synced, and lost in a crash
	Torn    int // lost batches that the next opener found half written and dropped
	Corrupt int // rows changed by Flip
}

type diskOnce struct {
	match  func(DiskCommit) bool
	faults DiskFaults
	hit    atomic.Bool
}

// volume is the part of the disk that belongs to one store.
type volume struct {
	rows    map[string]cell
	written []*write // not synced, in order
	torn    bool     // ends with half a batch
	opener  *diskStore
}

// cell is a row; its value is immutable.
type cell struct {
	value   []byte
	flipped bool
}

// write is a batch in flight to the disk.
type write struct {
	ops    []store.Op
	synced bool
}

// NewDisk returns an empty disk. The seed determines which batches a crash keeps.
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

// Next applies the faults to the next commit for which match returns true, and only to that commit.
// A nil match matches every commit. hit reports whether a commit has matched. match must not use
// the disk.
func (d *Disk) Next(match func(DiskCommit) bool, f DiskFaults) (hit func() bool) {
	d.note("for one commit %+v", f)
	o := &diskOnce{match: match, faults: f}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.once = append(d.mu.once, o)
	return o.hit.Load
}

// Flip flips a bit of a row on the disk, as disks do silently. The store detects it by its
// checksum. Flip reports whether the row exists.
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

// Crash stops all stores like a loss of power. Pending and later calls return store.ErrClosed.
// Member.Crash calls it.
func (d *Disk) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range sortedKeys(d.mu.volumes) {
		if v := d.mu.volumes[name]; v.opener != nil {
			v.opener.endLocked(true)
		}
	}
}

// Open opens the store with the given name, and creates it if it does not exist. Concurrent commits
// share a sync. It returns store.ErrLocked while the store is open elsewhere.
func (d *Disk) Open(name string) (store.Store, error) {
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
	v.opener = &diskStore{disk: d, name: name, on: v, turn: make(chan struct{}, 1),
		end: make(chan struct{})}
	return v.opener, nil
}

// loseLocked determines what a crash keeps of the unsynced data: the first batches, and possibly
// half of the next one.
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

// syncLocked syncs everything that is written.
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

// errSync is the cause of the failure of a store on a disk.
var errSync = errors.New("testkit: sync failed")
