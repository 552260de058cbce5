package core

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/causal"
)

// Loader builds an Image from the rows of a store. It is separate from a core so that it can run
// beside the actor: Add decodes rows and computes their fingerhashes. It is not safe for concurrent
// use.
type Loader struct {
	owner  string
	header header
	found  bool // the header was found
	rows   int
	bytes  int64
	holes  []string // why the rows as a whole are not consistent

	members []byte
	redo    []store.Op // by the rows that they replace
	redone  int        // number of them that have been processed
	live    gathering
	old     gathering // of the generation oldOf, which is not live
	oldOf   uint64
	aside   map[string]causal.Store
	trash   []string // useless rows
	others  []string // rows of other generations
	dots    []causal.Dot
	hashes  map[causal.Replica]history.Heard
}

// Image is the content of a disk. It is for one Loaded.
type Image struct {
	header header
	sound  bool
	state  history.State
	marks  history.Sum
	holes  []string
	memory []byte
	redo   []store.Op
	aside  map[string]causal.Store
	trash  []string // useless rows
	old    []string // rows that are set aside
	hashes map[causal.Replica]history.Heard
}

// NewLoader returns a loader for the rows of an owner; see DiskConfig.Owner.
func NewLoader(owner string) *Loader {
	return &Loader{owner: owner, aside: map[string]causal.Store{},
		hashes: map[causal.Replica]history.Heard{}}
}

// Add processes the next row of Store.Load. It returns ErrForeign or ErrNewer if the store must not
// be written. An undecodable row is a hole, like one that is Corrupt.
func (l *Loader) Add(key string, value []byte) error {
	l.rows++
	l.bytes += int64(len(key) + len(value))
	switch {
	case key == rowHeader:
		return l.addHeader(value)
	case key == rowMembers:
		l.members = value
	case strings.HasPrefix(key, rowRedo) && l.header.redo == 0:
		l.trash = append(l.trash, key)
	case strings.HasPrefix(key, rowRedo):
		if len(value) == 0 {
			l.hole("row %q is empty", key)
			return nil
		}
		l.redo = append(l.redo, store.Op{Row: store.Row{Key: key[len(rowRedo):], Value: value[1:]},
			Delete: value[0] == 1})
	default:
		for l.redone < len(l.redo) && l.redo[l.redone].Key < key {
			l.redoNext()
		}
		if l.redone < len(l.redo) && l.redo[l.redone].Key == key {
			l.redoNext()
		} else {
			l.addRow(key, value)
		}
	}
	return nil
}

func (l *Loader) addHeader(value []byte) error {
	h, err := decodeHeader(value)
	switch {
	case err != nil:
		l.hole("header: %v", err)
		return nil
	case h.format > rowFormat:
		return fmt.Errorf("%w: %d, this version knows %d", ErrNewer, h.format, rowFormat)
	case h.owner != l.owner:
		return fmt.Errorf("%w: %q, here %q", ErrForeign, strings.Split(h.owner, "\x00"),
			strings.Split(l.owner, "\x00"))
	}
	l.header, l.found = h, true
	return nil
}

// redoNext processes the next of the rows that replace others.
func (l *Loader) redoNext() {
	o := l.redo[l.redone]
	l.redone++
	switch {
	case o.Key == rowMembers:
		l.members = o.Value
	case !o.Delete:
		l.addRow(o.Key, o.Value)
	}
}

func (l *Loader) addRow(key string, value []byte) {
	n, ok := parseRow(key)
	switch {
	case !ok:
		l.trash = append(l.trash, key)
		l.hole("row %q is unknown", key)
		return
	case !l.found || n.generation != l.header.live:
		l.others = append(l.others, key)
		if l.found && (n.generation < l.header.aside || n.generation > l.header.live) {
			return
		}
		l.setAside(n, value)
		return
	}
	l.others = append(l.others, key)
	var err error
	switch {
	case n.vector:
		err = l.addOrigin(n, value)
	default:
		err = l.live.add(n, value)
	}
	if err != nil {
		l.hole("row %q: %v", key, err)
	}
}

// setAside keeps the readable rows of a generation that is not live.
func (l *Loader) setAside(n rowName, value []byte) {
	if n.vector {
		return
	}
	if n.generation != l.oldOf {
		l.keepAside(&l.old)
		l.old, l.oldOf = gathering{}, n.generation
	}
	if l.old.add(n, value) != nil && len(l.old.blob) > 0 { // parts of an atom are missing
		l.old.blob = nil
		_ = l.old.add(n, value)
	}
}

func (l *Loader) keepAside(g *gathering) {
	g.finish()
	for _, k := range g.keys {
		s := l.aside[k.key]
		for path, e := range k.held.Prefix("") {
			was, ok := s.Get(path)
			for leaf := range e.All() {
				if old, _ := was.Of(leaf.Replica); !ok || old.N < leaf.N { // the newer one
					s = s.Insert(path, leaf)
				}
			}
		}
		l.aside[k.key] = s
	}
}

func (l *Loader) addOrigin(n rowName, value []byte) error {
	r := causal.Replica(binary.BigEndian.Uint64([]byte(n.rest)))
	events, size := binary.Uvarint(value)
	if size <= 0 || events == 0 || r == 0 || len(value) != size && len(value) != size+4 {
		return errMalformed
	}
	l.dots = append(l.dots, causal.Dot{Replica: r, N: events})
	if len(value) > size {
		l.hashes[r] = history.Heard{N: events, Hash: binary.BigEndian.Uint32(value[size:])}
	}
	return nil
}

// Corrupt records a row that Store.Load yielded with ErrCorrupt. An empty key stands for missing
// rows.
func (l *Loader) Corrupt(key string) {
	n, ok := parseRow(key)
	if other := ok && l.found && n.generation != l.header.live; !other {
		l.hole("row %q is corrupt", key)
	}
	if key != "" && key != rowHeader && key != rowMembers {
		l.others = append(l.others, key)
	}
}

// hole records why the rows are not consistent.
func (l *Loader) hole(format string, args ...any) {
	if len(l.holes) < maxHoles {
		l.holes = append(l.holes, fmt.Sprintf(format, args...))
	}
}

// maxHoles bounds the number of holes that are listed.
const maxHoles = 1000

// Progress returns the number of rows and bytes added.
func (l *Loader) Progress() (rows int, bytes int64) { return l.rows, l.bytes }

// Image completes the loading. It checks that the rows match the header: that they are all of the
// state of the replica after one of its steps [R50].
func (l *Loader) Image() *Image {
	for l.redone < len(l.redo) {
		l.redoNext()
	}
	l.keepAside(&l.old)
	marks := l.live.finish()
	i := &Image{
		header: l.header, memory: l.members, redo: l.redo, aside: l.aside, trash: l.trash,
		hashes: l.hashes, marks: marks,
		state: l.live.state(causal.MakeVector(l.dots...)),
	}
	if l.rows > len(l.trash) && !l.found { // else the first batch was not completed
		l.hole("the header is missing")
	}
	l.compare(i)
	if i.sound, i.holes = len(l.holes) == 0, l.holes; !i.sound {
		l.keepAside(&l.live)
		i.redo, i.state, i.marks, i.hashes = nil, history.State{}, history.Sum{}, nil
		for _, o := range l.redo {
			i.trash = append(i.trash, rowRedo+o.Key)
		}
	}
	i.old = l.ofNoUse(i.sound)
	return i
}

// compare checks the rows against the header.
func (l *Loader) compare(i *Image) {
	h := l.header
	switch v := i.state.Seen; {
	case !l.found:
	case l.live.fault != nil:
		l.hole("%v", l.live.fault)
	case h.redo != uint64(len(l.redo)):
		l.hole("%d redo rows, the header says %d", len(l.redo), h.redo)
	case v.Hash() != h.vector || uint64(v.Len()) != h.origins:
		l.hole("the vector of %d replicas does not match the header, which names %d", v.Len(),
			h.origins)
	case i.state.Sum != h.sum:
		l.hole("the atoms do not match their fingerprint")
	case i.marks != h.marks:
		l.hole("the marks do not match their fingerprint")
	default:
		m, err := quorum.Memory{}, error(nil)
		if l.members != nil {
			m, err = decodeMemory(l.members)
		}
		if err != nil || m.Digest() != h.members {
			l.hole("the memory of the members does not match the header: %v", err)
		}
	}
}

// ofNoUse returns the rows that can be deleted once everything set aside is safe.
func (l *Loader) ofNoUse(sound bool) []string {
	if !sound {
		return l.others
	}
	return slices.DeleteFunc(l.others, func(key string) bool {
		n, ok := parseRow(key)
		return ok && n.generation == l.header.live
	})
}
