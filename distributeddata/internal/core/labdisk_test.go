package core

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// labDisk is the disk of a member of a lab.
type labDisk struct {
	simDisk
	behind time.Duration
	held   bool  // batches wait
	err    error // of the next batches
	events int   // bound on events
	writes []int // size of each batch
}

// newDiskLab returns a lab of members with disks.
func newDiskLab(t *testing.T, names ...string) *lab { return newDiskLabOf(t, 0, names...) }

func newDiskLabOf(t *testing.T, least int, names ...string) *lab {
	l := newLabOf(t, least)
	l.order, l.disks = names, map[string]*labDisk{}
	for _, n := range names {
		l.disks[n] = &labDisk{events: 1000}
		l.boot(n)
	}
	l.meet()
	return l
}

func (l *lab) diskOf(name string) *DiskConfig {
	d := l.disks[name]
	if d == nil {
		return nil
	}
	return &DiskConfig{Owner: "sim", Bytes: 1 << 20, Events: d.events, Retry: time.Second,
		Behind: d.behind, batchRows: l.batchRows}
}

// commit writes a batch, or queues it.
func (l *lab) commit(name string, e Commit) {
	d := l.disks[name]
	require.NoError(l.t, e.Batch.Validate())
	d.under = append(d.under, e)
	if !d.held {
		l.write(name)
	}
}

// write completes the batch in flight.
func (l *lab) write(name string) {
	d := l.disks[name]
	e := d.under[0]
	d.under = d.under[1:]
	if d.err == nil {
		d.apply(e.Batch)
		d.writes = append(d.writes, e.Batch.Size())
	}
	l.step(name, Committed{Number: e.Number, Err: d.err})
}

// sync writes batches until none is in flight.
func (l *lab) sync(name string) {
	for l.disks[name].held = false; len(l.disks[name].under) > 0; {
		l.write(name)
	}
}

// crash stops members. Their disks keep what was written.
func (l *lab) crash(names ...string) {
	for _, name := range names {
		l.cores[name] = nil
		if d := l.disks[name]; d != nil {
			d.under, d.held = nil, false
		}
		l.take(func(m mail) bool { return m.from == name || m.to == name })
	}
}

// boot starts a member on its disk.
func (l *lab) boot(name string) *Image {
	l.start(name)
	i := l.disks[name].image(l.t.Fatalf)
	l.step(name, Loaded{Image: i})
	return i
}

// rowsOf returns a copy of the rows of a disk.
func (l *lab) rowsOf(name string) map[string][]byte { return maps.Clone(l.disks[name].rows) }
