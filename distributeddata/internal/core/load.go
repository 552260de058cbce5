package core

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/causal"
)

// Loader makes an Image of the rows of a store. It is not part of a core, so that it can run beside the actor: rows
// are decoded and their fingerprints computed in Add. It is for use by one goroutine at a time.
type Loader struct {
	owner  string
	header header
	found  bool // the header
	rows   int
	bytes  int64
	holes  []string // why the rows cannot be trusted as a whole

	members []byte
	redo    []store.Op // by the rows that they are to take the place of
	redone  int        // so many of them have
	live    gathering
	aside   map[string]causal.Store
	trash   []string // rows of no use
	others  []string // rows of other generations
	dots    []causal.Dot
	prints  map[causal.Replica]heardPrints
}

// Image is what a disk held. It is for one Loaded.
type Image struct {
	header header
	sound  bool
	state  State
	marks  Sum
	holes  []string
	memory []byte
	redo   []store.Op
	aside  map[string]causal.Store
	trash  []string // rows of no use
	old    []string // rows that are set aside
	prints map[causal.Replica]heardPrints
}

// Holes returns why the rows cannot be trusted; none if they are what a replica held at one moment.
func (i *Image) Holes() []string { return i.holes }

// State returns what the rows amount to; nothing if there are holes.
func (i *Image) State() State { return i.state }

// NewLoader returns a loader of the rows of an owner, as in DiskConfig.
func NewLoader(owner string) *Loader {
	return &Loader{owner: owner, aside: map[string]causal.Store{}, prints: map[causal.Replica]heardPrints{}}
}

// Add takes the next row of Store.Load. An error is ErrForeign or ErrNewer: nothing may be written to that store. A
// row that cannot be understood is a hole, like one that is Corrupt.
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
		l.redo = append(l.redo, store.Op{Row: store.Row{Key: key[len(rowRedo):], Value: value[1:]}, Delete: value[0] == 1})
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
		return fmt.Errorf("%w: %d, known is %d", ErrNewer, h.format, rowFormat)
	case h.owner != l.owner:
		return fmt.Errorf("%w: %q, this is %q", ErrForeign, h.owner, l.owner)
	}
	l.header, l.found = h, true
	return nil
}

// redoNext takes the next of the rows that are to take the place of others.
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

// setAside keeps what can be read of a generation that does not count.
func (l *Loader) setAside(n rowName, value []byte) {
	var g gathering
	if n.vector || n.kind == rowPart || g.add(n, value) != nil { // a part alone is of no use
		return
	}
	l.keepAside(&g)
}

func (l *Loader) keepAside(g *gathering) {
	g.finish()
	for _, k := range g.keys {
		s := l.aside[k.key]
		for path, e := range k.held.Prefix("") {
			was, ok := s.Get(path)
			for leaf := range e.All() {
				if old, _ := was.Of(leaf.Replica); !ok || old.N < leaf.N { // of two generations the newer atom
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
		l.prints[r] = heardPrints{events, []imprint{binary.BigEndian.Uint32(value[size:])}}
	}
	return nil
}

// Corrupt notes a row that Store.Load yielded with ErrCorrupt; without a key it is rows that are missing.
func (l *Loader) Corrupt(key string) {
	n, ok := parseRow(key)
	if other := ok && l.found && n.generation != l.header.live; !other {
		l.hole("row %q is corrupt", key)
	}
	if key != "" && key != rowHeader && key != rowMembers {
		l.others = append(l.others, key)
	}
}

// hole notes why the rows cannot be trusted.
func (l *Loader) hole(format string, args ...any) {
	if len(l.holes) < maxHoles {
		l.holes = append(l.holes, fmt.Sprintf(format, args...))
	}
}

// maxHoles bounds how many holes are told apart.
const maxHoles = 1000

// Progress returns how many rows and bytes have been added.
func (l *Loader) Progress() (rows int, bytes int64) { return l.rows, l.bytes }

// Image ends the loading. It finds out whether the rows are those that the header speaks of: what the replica held
// after one of its steps, and all of that [R22].
func (l *Loader) Image() *Image {
	for l.redone < len(l.redo) {
		l.redoNext()
	}
	marks := l.live.finish()
	i := &Image{
		header: l.header, memory: l.members, redo: l.redo, aside: l.aside, trash: l.trash, prints: l.prints, marks: marks,
		state: State{Keys: l.live.sorted(), Seen: causal.MakeVector(l.dots...), sum: l.live.sum},
	}
	if l.rows > 0 && !l.found {
		l.hole("there is no header")
	}
	l.compare(i)
	if i.sound, i.holes = len(l.holes) == 0, l.holes; !i.sound {
		l.keepAside(&l.live)
		i.redo, i.state, i.marks, i.prints = nil, State{}, Sum{}, nil
		for _, o := range l.redo {
			i.trash = append(i.trash, rowRedo+o.Key)
		}
	}
	i.old = l.ofNoUse(i.sound)
	return i
}

// compare compares the rows with the header.
func (l *Loader) compare(i *Image) {
	h := l.header
	switch v := i.state.Seen; {
	case !l.found:
	case l.live.fault != nil:
		l.hole("%v", l.live.fault)
	case h.redo != uint64(len(l.redo)):
		l.hole("%d rows to be redone, not %d", len(l.redo), h.redo)
	case v.Hash() != h.vector || uint64(v.Len()) != h.origins:
		l.hole("the vector of %d replicas does not fit the header, which speaks of %d", v.Len(), h.origins)
	case i.state.sum != h.sum:
		l.hole("the atoms do not fit their fingerprint")
	case i.marks != h.marks:
		l.hole("the marks do not fit their fingerprint")
	default:
		m, err := memory{}, error(nil)
		if l.members != nil {
			m, err = decodeMemory(l.members)
		}
		if err != nil || m.digest != h.members {
			l.hole("what is remembered of the members does not fit: %v", err)
		}
	}
}

// ofNoUse returns the rows that are to be deleted once what is set aside is safe elsewhere.
func (l *Loader) ofNoUse(sound bool) []string {
	if !sound {
		return l.others
	}
	return slices.DeleteFunc(l.others, func(key string) bool {
		n, ok := parseRow(key)
		return ok && n.generation == l.header.live
	})
}
