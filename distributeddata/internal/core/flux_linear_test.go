package core

import (
	"strings"
	"time"

	clients "github.com/concord-go/concord/testkit/history"
)

// recount records majority writes, of which each adds one element, and linearizable reads, which count the
// elements: together they are a counter, which must be linearizable while members come and go.
type recount struct {
	at     int64 // position in the history
	reads  map[uint64]*counted
	writes map[string]*counted // by their elements
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
	return recount{reads: map[uint64]*counted{}, writes: map[string]*counted{}}
}

func (r *recount) begin(member int, in countOp) *counted {
	r.at++
	return &counted{Client: member, Input: in, Call: r.at, Return: clients.Never}
}

// happened notes that a write has been made by now. One that nobody has seen is left out in the end.
func (r *recount) happened(element string) {
	if w := r.writes[element]; w != nil && !w.Output.Known {
		r.at++
		w.Return, w.Output.Known = r.at, true
	}
}

// shown ends a read that shows these elements.
func (r *recount) shown(id uint64, elements []string) {
	for _, e := range elements {
		r.happened(e)
	}
	r.at++
	o := r.reads[id]
	o.Return, o.Output = r.at, clients.Outcome[int]{Value: len(elements), Known: true}
}

// recountPatience is for a search that takes milliseconds.
const recountPatience = time.Minute

// judge looks for an order of all that has an outcome.
func (r *recount) judge(s *play) {
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
	known := ops[:0]
	for _, o := range ops {
		if o.Output.Known {
			known = append(known, o)
		}
	}
	s.flux.judged += len(known)
	if ok, err := clients.Linearizable(counter, known, recountPatience); err != nil || !ok {
		s.w.Fail("majority writes and linearizable reads are not linearizable: %v\n%s", err, clients.Story(known))
	}
}

// elements returns what writes at a majority have added.
func (f *flux) elements(s *play, keys Keys) (out []string) {
	h, _ := keys.Get("sw")
	got, err := shown(Keys{}.put("sw", h))
	if err != nil {
		s.w.Fail("%v", err)
	}
	for line := range strings.Lines(got) {
		element, ok := strings.CutPrefix(strings.TrimSpace(line), "sw/")
		if element, _, _ = strings.Cut(element, "="); ok {
			out = append(out, element)
		}
	}
	return out
}
