package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/testkit/crdttest"
)

func Example() {
	main()
	// Output:
	// A two-phase set: a removed name stays off the list, whatever is concurrent.
	//   alice [ann ben cyd]  bob [ann]
	//   alice [ann cyd]  bob [ann cyd]
	// A survey: every vote counts, and of concurrent headlines the last one stands.
	//   alice {lunch:What is for lunch? {pie:2 soup:2}}
	//   bob   {lunch:What is for lunch? {pie:2 soup:2}}
}

// The specification: an element is in the set if a visible change added it and none removed it.
func TestGuests_Laws(t *testing.T) {
	crdttest.Run(t, crdttest.Type[guests]{
		Spec: func(puts []crdttest.Visible) (string, bool) {
			added, removed := false, false
			for _, p := range puts {
				added, removed = added || p.Text == "add", removed || p.Text == "remove"
			}
			return "in", added && !removed
		},
		Change: func(d *crdttest.Draw, w *crdt.Writer, g *guests) []crdttest.Effect {
			e := d.Letter("name")
			if d.Bool("remove") {
				g.Remove(w, e)
				return crdttest.Put(e, "remove")
			}
			g.Add(w, e)
			return crdttest.Put(e, "add")
		},
		Show: func(g guests) map[string]string {
			out := map[string]string{}
			for e := range g.All() {
				out[e] = "in"
			}
			return out
		},
	})
}

// Every vote counts, and the last headline wins; a headline has its own cell.
func TestQuestion_Laws(t *testing.T) {
	const headline = "headline"
	crdttest.Run(t, crdttest.Type[question]{
		Spec: func(puts []crdttest.Visible) (string, bool) {
			if puts[0].Cell == headline {
				return crdttest.Last(puts)
			}
			return crdttest.Sum(puts)
		},
		Change: func(d *crdttest.Draw, w *crdt.Writer, q *question) []crdttest.Effect {
			answer := d.Letter("answer")
			switch d.Int("op", 0, 4) {
			case 0:
				q.Headline.Set(w, answer)
				return crdttest.Set(headline, answer)
			case 1:
				q.Retract(w, answer)
				return crdttest.Count(answer, -1)
			}
			q.Vote(w, answer)
			return crdttest.Count(answer, 1)
		},
		Show: func(q question) map[string]string {
			out := map[string]string{}
			if h, ok := q.Headline.Value(); ok {
				out[headline] = h
			}
			for answer, n := range q.votes.All() {
				out[answer] = fmt.Sprint(n)
			}
			return out
		},
	})
}

// Removing a question removes the votes it has seen, as one value. A concurrent vote restores the
// question as its voter saw it, since a user-defined type has no parts that a map could reset
// separately.
func TestSurvey_RemovedQuestionComesBackWhole(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b survey
	vote := func(s *survey, w *crdt.Writer) {
		s.Update(w, "q", func(q *question) { q.Vote(w, "yes") })
	}
	vote(&a, alice.Writer())
	b = b.Merge(a)
	b.Remove(bob.Writer(), "q")
	vote(&a, alice.Writer())
	q, ok := b.Merge(a).Get("q")
	require.True(t, ok)
	require.EqualValues(t, 2, q.Votes("yes"))
}

func TestDecode_Damaged(t *testing.T) {
	var g guests
	g.Add(crdt.NewReplica(1).Writer(), "ann")
	b, err := g.AppendBinary(nil)
	require.NoError(t, err)
	for i := range b {
		_, err := guests{}.Decode(b[:i])
		require.ErrorIs(t, err, crdt.ErrMalformed)
		_, err = question{}.Decode(b[:i])
		require.Error(t, err)
	}
	_, err = guests{}.Decode(append(b, 0))
	require.ErrorIs(t, err, crdt.ErrMalformed)
}
