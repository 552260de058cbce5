package core

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	clients "github.com/concord-go/concord/testkit/history"
)

// recount records majority writes, and linearizable reads, which count the writes that they show.
// Together they are a counter, which must be linearizable while members come and go.
type recount struct {
	at     int64 // position in the history
	reads  map[uint64]*counted
	writes map[int]*counted // by their updates
}

type counted = clients.Operation[countOp, int]

type countOp struct{ read bool }

func (o countOp) String() string {
	if o.read {
		return "count"
	}
	return "write"
}

// counter is the model.
var counter = clients.Model[int, countOp, int]{
	Step: func(n int, in countOp, out clients.Outcome[int]) []int {
		switch {
		case in.read && out.Value != n:
			return nil
		case in.read:
			return []int{n}
		}
		return []int{n + 1}
	},
}

func newRecount() recount {
	return recount{reads: map[uint64]*counted{}, writes: map[int]*counted{}}
}

func (r *recount) begin(member int, in countOp) *counted {
	r.at++
	return &counted{Client: member, Input: in, Call: r.at, Return: clients.Never}
}

// happened records that a write has been made by now. A write that no read has shown is left out in
// the end.
func (r *recount) happened(id int) {
	if w := r.writes[id]; w != nil && !w.Output.Known {
		r.at++
		w.Return, w.Output.Known = r.at, true
	}
}

// shown records the end of a read that shows these updates.
func (r *recount) shown(id uint64, shows names) {
	n := 0
	for _, d := range shows.all() {
		if r.writes[d] != nil {
			r.happened(d)
			n++
		}
	}
	r.at++
	o := r.reads[id]
	o.Return, o.Output = r.at, clients.Outcome[int]{Value: n, Known: true}
}

// wrote records that a client of a member has begun a write.
func (f *flux) wrote(d *deed, member int) {
	if f != nil {
		f.recount.writes[d.id] = f.recount.begin(member, countOp{})
	}
}

// asked records that a client of a member has begun a linearizable read.
func (f *flux) asked(id uint64, member int) {
	if f != nil {
		f.recount.reads[id] = f.recount.begin(member, countOp{read: true})
	}
}

// acknowledged records a write that has succeeded.
func (f *flux) acknowledged(d *deed) {
	if f != nil {
		f.recount.happened(d.id)
	}
}

// answered records the result of a linearizable read.
func (f *flux) answered(id uint64, shows names) {
	if f != nil {
		f.recount.shown(id, shows)
	}
}

// judge looks for a linearization of all operations with an outcome.
func (r *recount) judge(s *play) {
	if st := s.flux.store; st != nil && s.happened["times nobody was left"] > 0 {
		return // the data of the last member is lost
	}
	if s.w.Failed() || s.w.Again() {
		return
	}
	var ops []counted
	for _, o := range r.reads {
		ops = append(ops, *o)
	}
	for _, o := range r.writes {
		ops = append(ops, *o)
	}
	ops = slices.DeleteFunc(ops, func(o counted) bool { return !o.Output.Known })
	s.happened["operations linearized"] += len(ops)
	if why := uncountable(ops); why != "" {
		s.w.Fail("majority writes and linearizable reads are not linearizable: %s\n%s", why,
			clients.Story(ops))
	}
}

// uncountable says why the operations with known outcomes are not those of a counter that each take
// effect at one moment between begin and end; it returns "" if they are. Writes are alike, so it
// suffices to go through the history once. A pending write is made only when it must be: at its
// end, or when a read ends that counts more than were made. The pending write that ends first is
// made first. So there are never more writes than necessary, and a read that begins must count all
// of them. Porcupine agrees, but may take forever where many calls wait at once.
func uncountable(ops []counted) string {
	type moment struct {
		at  int64
		op  int
		end bool
	}
	var all []moment
	for i, o := range ops {
		all = append(all, moment{o.Call, i, false}, moment{o.Return, i, true})
	}
	slices.SortFunc(all, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	made := 0
	under := map[int]bool{} // writes that have begun and have not been made
	for _, m := range all {
		o := ops[m.op]
		switch read := o.Input.read; {
		case !read && !m.end:
			under[m.op] = true
		case !read && under[m.op]:
			delete(under, m.op)
			made++
		case read && !m.end && made > o.Output.Value:
			return fmt.Sprintf("a read that begins at %d counts %d, of %d that were made", m.at,
				o.Output.Value, made)
		case read && m.end:
			for ; made < o.Output.Value; made++ {
				if len(under) == 0 {
					return fmt.Sprintf("a read that ends at %d counts %d, %d were made", m.at,
						o.Output.Value, made)
				}
				delete(under, slices.MinFunc(slices.Collect(maps.Keys(under)), func(a, b int) int {
					return cmp.Compare(ops[a].Return, ops[b].Return)
				}))
			}
		}
	}
	return ""
}

func TestRecount_AgreesWithPorcupine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	verdicts := map[bool]int{}
	for range 5000 {
		ops := make([]counted, 2+r.IntN(9))
		moments := r.Perm(2 * len(ops))
		for i := range ops {
			a, b := moments[2*i], moments[2*i+1]
			ops[i] = counted{Client: i, Call: int64(min(a, b)), Return: int64(max(a, b)),
				Output: clients.Outcome[int]{Known: true}}
			if r.IntN(2) == 0 {
				ops[i].Input.read, ops[i].Output.Value = true, r.IntN(4)
			}
		}
		want, err := clients.Linearizable(counter, ops, time.Minute)
		require.NoError(t, err)
		require.Equal(t, want, uncountable(ops) == "", "%s\n%s", uncountable(ops),
			clients.Story(ops))
		verdicts[want]++
	}
	require.Greater(t, min(verdicts[true], verdicts[false]), 500, "%v", verdicts)
}
